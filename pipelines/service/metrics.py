"""Metrics of the service for Prometheus."""

from collections.abc import Callable

import prometheus_client as prometheus
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

_SECONDS = {
    "queue": "Wait of a request until its first text is tokenized.",
    "tokenizing": "Tokenizing one group of texts.",
    "model": "Model time per batch.",
    "request": "Request time, from head to answer.",
}
_BUCKETS_OF_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_PIECES = tuple(float(1 << power) for power in range(3, 16))


class ServiceMetrics:
    """The metrics of one service. queue: returns the number of texts waiting or being computed.

    seconds: histograms by what takes the time: queue, tokenizing, model, request.
    """

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, queue: Callable[[], int]) -> None:
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each
        self._registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self._registry)
        self.requests = prometheus.Counter(
            "korbert_requests", "Requests by route and code; 499: the client left.", ["route", "code"],
            registry=self._registry,
        )  # fmt: skip
        length = prometheus.Gauge("korbert_queue_texts", "Texts waiting or being computed.", registry=self._registry)
        length.set_function(queue)
        self.seconds = {
            name: prometheus.Histogram(
                f"korbert_{name}_seconds", about, buckets=_BUCKETS_OF_SECONDS, registry=self._registry
            )
            for name, about in _SECONDS.items()
        }
        self.batch_pieces = prometheus.Histogram(
            "korbert_batch_pieces", "Pieces per batch.", buckets=_PIECES, registry=self._registry
        )

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return prometheus.generate_latest(self._registry)
