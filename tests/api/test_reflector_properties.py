import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.reflecting import PODS, pod, reflecting, truth
from tests.faults import faults
from tests.faults.api_server import FakeApiServer
from tests.waiting import until

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcd")),
        st.tuples(st.just("recreate"), st.sampled_from("abcd")),
        st.tuples(st.just("delete"), st.sampled_from("abcd")),
        st.tuples(
            st.just("fault"),
            st.sampled_from(
                [
                    faults.CutLine(),
                    faults.ResetInLine(),
                    faults.DuplicateEvents(),
                    faults.DribbleLines(),
                    faults.EndStream(),
                    faults.StreamError(410),
                    faults.StreamError(500),
                    faults.Refuse(410),
                    faults.Refuse(429, retry_after=1),
                    faults.Refuse(503),
                    faults.Reset(),
                    faults.HalfReply(),
                ]
            ),
        ),
        st.tuples(st.just("compact"), st.just(None)),
        st.tuples(st.just("bookmark"), st.just(None)),
        st.tuples(st.just("end"), st.just(None)),
        st.tuples(st.just("breathe"), st.integers(1, 5)),
    ),
    max_size=30,
)


def change(server, what, value, number):
    match what:
        case "put":
            server.put(PODS, pod(value, nodeName=f"n{number}"))
        case "recreate":
            server.put(PODS, {"metadata": {"name": value, "namespace": "default", "uid": f"u{number}"}})
        case "delete" if f"default/{value}" in server.objects.get(PODS, {}):
            server.delete(PODS, f"default/{value}")
        case "fault":
            server.inject(value)
        case "compact":
            server.compact()
        case "bookmark":
            server.bookmark(PODS)
        case "end":
            server.end_watches()


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_after_any_sequence_of_changes_and_faults_the_view_equals_the_truth(steps):
    async def play():
        async with FakeApiServer() as server, reflecting(server, page_size=2) as (_, view):
            for number, (what, value) in enumerate(steps):
                if what == "breathe":
                    await asyncio.sleep(0.001 * value)
                else:
                    change(server, what, value, number)
            server.put(PODS, pod("last"))
            await until(lambda: view.versions() == truth(server))

    asyncio.run(play())
