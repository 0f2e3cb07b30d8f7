from korbert.tasks.kinds.token_classification import learn_dictionary, look_up
from tests.korbert.tasks.token_classification.helpers import marked

ROWS = [
    "<세종:PS>은 <서울:LC>에 산다",
    "<서울대:OG>는 <서울:LC>에 있고 <서울:OG>이 이겼다",
    "<이:PS>는 이 집의 이웃이다",
]


def test_the_longest_entry_with_its_most_frequent_label():
    dictionary = learn_dictionary(map(marked, ROWS))
    assert dictionary == {"서울": "LC", "서울대": "OG", "세종": "PS"}  # 이 is mostly no name
    text, expected = marked("<서울대:OG>에서 <서울:LC><서울:LC> <세종:PS>")
    assert look_up(text, dictionary) == expected
    assert look_up("", dictionary) == look_up("서", dictionary) == look_up("서울", {}) == []
    assert learn_dictionary(map(marked, ["<한강:LC>", "<한강:AF>"])) == {"한강": "AF"}
    assert learn_dictionary(map(marked, ["<한강:LC>", "한강"])) == {}
