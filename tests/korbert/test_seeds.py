from korbert.seeds import derived_seed


def test_seeds_stay_what_they_are():
    """The bytes of trained models depend on them."""
    assert derived_seed(0, 1, 2) == 10917752987982246961
    assert derived_seed("rows", 0, 128) == 1524536700974639789
    seeds = {derived_seed(*parts) for parts in [("a", 1, 2), ("a", 2, 1), ("b", 1, 2), ("a", 12), ("a", "1", 2)]}
    assert len(seeds) == 5
