"""Mistakes in webhooks: what is sent twice or never, to whom, and what is believed of an answer."""

from mutants.mutant import Mutant

COURIER = "tests/webhooks/test_courier.py"
TRANSPORT = "tests/webhooks/test_transport.py"
EXPANSION = "tests/webhooks/test_expansion.py"
SIGNATURE = "tests/webhooks/test_signature.py"
PART = "tests/webhooks/test_webhooks_part.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "webhooks/courier.py:Courier._serve",
        "late = self._clock.monotonic() > leased.before",
        "late = False",
        f"{COURIER}::test_what_waits_behind_a_slow_receiver_is_given_back_in_time[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._lease",
        "                room = 1\n",
        "                pass\n",
        f"{COURIER}::test_an_endpoint_that_fails_for_an_hour_pauses_itself_until_a_trial_succeeds[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._lease",
        "max(first_due, endpoint.send_at)",
        "first_due",
        f"{COURIER}::test_one_that_asks_to_wait_gets_nothing_before[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._start_threads",
        "min(AT_ONCE_PER_RECEIVER, outgoing.active + len(outgoing.waiting))",
        "outgoing.active + len(outgoing.waiting)",
        f"{COURIER}::test_a_slow_receiver_holds_up_nobody_else[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._add_event",
        "        self._behind = True\n",
        "",
        f"{COURIER}::test_what_failed_is_told_to_others_and_never_of_itself[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._note_failed",
        '[each for each in failed if each.type != "webhook.failed"]',
        "list(failed)",
        f"{COURIER}::test_what_failed_is_told_to_others_and_never_of_itself[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._change",
        'failed = tx.webhooks.fail_all(receiver_of(after.id), after.reason or "")',
        "failed = 0",
        f"{COURIER}::test_one_that_says_gone_is_disabled_and_gets_nothing_more[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._secrets_of",
        "now < endpoint.overlap_until",
        "now > endpoint.overlap_until",
        f"{SIGNATURE}::test_after_a_rotation_both_secrets_verify_until_the_overlap_is_over[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier.leave",
        "            tx.webhooks.end()\n",
        "",
        f"{COURIER}::test_a_retry_by_hand_tells_the_url_again[sqlite]",
    ),
    Mutant(
        "webhooks/expansion.py:_drafts",
        "event.seq <= endpoint.since or ",
        "",
        "tests/webhooks/test_endpoints.py::test_an_endpoint_gets_what_comes_after_it_alone[sqlite]",
    ),
    Mutant(
        "webhooks/expansion.py:_drafts",
        "            continue  # one that failed is not told of it\n",
        "            pass\n",
        f"{COURIER}::test_what_failed_is_told_to_others_and_never_of_itself[sqlite]",
    ),
    Mutant(
        "webhooks/expansion.py:apply_page",
        "    if not tx.webhooks.move_cursor(page.at, page.to):\n        return False\n",
        "    tx.webhooks.move_cursor(page.at, page.to)\n",
        f"{EXPANSION}::test_of_two_that_expand_at_once_one_does_nothing[sqlite]",
    ),
    Mutant(
        "webhooks/expansion.py:read_page",
        "to = last if is_last else events[-1].seq",
        "to = last",
        f"{EXPANSION}::test_pages_are_bounded_and_none_is_left_out[sqlite]",
    ),
    Mutant(
        "webhooks/expansion.py:_made",
        "epoch_of(marks, event.seq)",
        "epoch_of(marks, 1 << 60)",
        f"{EXPANSION}::test_after_a_restore_no_id_means_another_event[sqlite]",
    ),
    Mutant(
        "webhooks/transport.py:Sending._made",
        "        refuse(destination, addresses, self._allowed)\n",
        "",
        f"{TRANSPORT}::test_without_an_exception_this_machine_is_refused",
    ),
    Mutant(
        "webhooks/transport.py:Sending._connected",
        "socket.create_connection((address, destination.port)",
        "socket.create_connection((self._resolve(destination.host, 1)[0], destination.port)",
        f"{TRANSPORT}::test_a_name_that_changes_its_mind_is_asked_once",
    ),
    Mutant(
        "webhooks/transport.py:Sending._encrypted",
        "server_hostname=destination.host",
        'server_hostname="good.example"',
        f"{TRANSPORT}::test_tls_goes_by_the_name_and_not_by_the_address",
    ),
    Mutant(
        "webhooks/transport.py:Sending.end_if_late",
        "self._socket.shutdown(socket.SHUT_RDWR)",
        "pass",
        f"{TRANSPORT}::test_a_server_that_sends_a_byte_now_and_then_is_left_in_time",
    ),
    Mutant(
        "webhooks/transport.py:_FirstBytes.readinto",
        "[: self._left]",
        "",
        f"{TRANSPORT}::test_a_huge_answer_is_read_in_part_only",
    ),
    Mutant(
        "webhooks/signature.py:signed_headers",
        "{delivery_id}.{timestamp}.",
        "{timestamp}.{delivery_id}.",
        f"{SIGNATURE}::test_the_vector_of_the_specification",
    ),
    Mutant(
        "webhooks/part.py:WebhooksPart.step",
        "self._process is not None or ",
        "",
        f"{PART}::test_one_courier_at_a_time_and_another_after_it_died[sqlite]",
    ),
    Mutant(
        "webhooks/part.py:_due",
        "    if endpoint.fingerprint and not endpoint.holders:\n        return None\n",
        "",
        f"{PART}::test_what_no_host_can_sign_is_no_work[sqlite]",
    ),
    Mutant(
        "webhooks/manage.py:resume_endpoint",
        "since=tx.events.last() if missed else endpoint.since",
        "since=endpoint.since",
        f"{COURIER}::test_one_that_says_gone_is_disabled_and_gets_nothing_more[sqlite]",
    ),
)
