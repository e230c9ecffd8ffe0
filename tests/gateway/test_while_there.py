"""A client that goes away ends the work that is done for it, and nothing else."""

import asyncio

import pytest

from mull.gateway.http import Gone, WhileThere


async def never():
    await asyncio.Event().wait()


async def at_once():
    return {"type": "http.disconnect"}


def test_work_that_is_done_is_not_disturbed():
    async def run():
        with WhileThere(never):
            await asyncio.sleep(0)
        return asyncio.all_tasks() == {asyncio.current_task()}

    assert asyncio.run(run())


def test_a_client_that_leaves_ends_the_work():
    ended = []

    async def work():
        try:
            await never()
        finally:
            ended.append(True)

    async def run():
        with pytest.raises(Gone), WhileThere(at_once):
            await work()
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(run())

    assert ended == [True]


def test_whoever_cancels_the_work_himself_is_heard():
    async def work():
        with WhileThere(never):
            await never()

    async def run():
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_a_failure_of_the_work_is_told_as_it_is():
    async def run():
        with pytest.raises(ValueError, match="no"), WhileThere(never):
            raise ValueError("no")

    asyncio.run(run())


def test_work_can_be_given_up():
    async def run():
        there = WhileThere(never)
        asyncio.get_running_loop().call_soon(there.give_up)
        with pytest.raises(Gone), there:
            await never()

    asyncio.run(run())
