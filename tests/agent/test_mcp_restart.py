"""How often a server that ends is started again."""

from mull.agent.mcp.server import PAUSES, STEADY, Restarts


def test_three_starts_in_a_row_with_growing_pauses_and_no_more():
    restarts = Restarts()
    assert [restarts.next_pause(1.0) for _ in range(5)] == [0.25, 1.0, 4.0, None, None]


def test_a_server_that_ran_well_begins_anew():
    restarts = Restarts()
    for _ in PAUSES:
        restarts.next_pause(0.0)
    assert restarts.next_pause(STEADY) == PAUSES[0]
    assert restarts.next_pause(STEADY - 1) == PAUSES[1]
