"""Names in tables on a phone: a line ends behind a separator, never within a word."""

from tests.web.clusters import node, pod

NODE = "ip-10-0-1-100.eu-west-1.compute.internal"
PODS = ("checkout-service-7c9d8f6b54-x2k9p", "recommendation-engine-worker-5f7d9c8b6d-q8w7z", "postgres-primary-0")
BROKEN = """() => {
  const broken = [];
  for (const { firstChild: text } of document.querySelectorAll("td button bdi, th button bdi")) {
    for (const { 0: word, index } of text.data.matchAll(/[^-/.]+/g)) {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      if (range.getClientRects().length > 1) broken.push(word);
    }
  }
  return broken;
}"""


def test_no_name_in_a_table_breaks_within_a_word(tab, page_of):
    running = [pod(f"{name[:-1]}r", "1", "1Gi", node_name=NODE, namespace="production-eu") for name in PODS]
    waiting = [pod(name, "1", "1Gi", namespace="production-eu") for name in PODS]
    page = tab(page_of([node(NODE, 16, "64Gi"), *running, *waiting]), viewport={"width": 390, "height": 844}).page
    page.wait_for_selector("#state.done")
    page.wait_for_selector("#decisions td")
    assert page.evaluate(BROKEN) == []
    page.locator("#decisions td:nth-child(3) button").first.click()
    page.wait_for_selector("#detail table")
    assert page.evaluate(BROKEN) == []
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390


def test_a_word_that_is_longer_than_a_phone_is_wide_breaks_all_the_same(tab, page_of):
    waiting = pod("x" * 200, "1", "1Gi", namespace="production-eu")
    page = tab(page_of([node(NODE, 16, "64Gi"), waiting]), viewport={"width": 390, "height": 844}).page
    page.wait_for_selector("#decisions td")
    assert page.evaluate("document.querySelector('#decisions td:nth-child(2)').clientWidth") < 260
