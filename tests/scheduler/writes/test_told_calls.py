from tests.scheduler.dispatcher_scene import Scene, settle


async def test_a_patch_is_told_with_its_outcome_and_what_waits_and_goes_on_with_its_number():
    scene = Scene()
    scene.close()
    scene.client.answers["refused"] = [403]
    for uid in ("refused", "taken", "also", "waits"):
        scene.patch(uid)
    await settle()
    assert scene.dispatcher.waiting_calls() == {"pod_binding": 0, "pod_status_patch": 1}
    assert scene.dispatcher.tasks()["pod_status_patch"] == 3
    scene.open()
    await scene.drain()
    assert sorted(scene.calls) == [
        ("pod_status_patch", outcome) for outcome in ("error", "success", "success", "success")
    ]
    assert scene.dispatcher.waiting_calls()["pod_status_patch"] == 0
