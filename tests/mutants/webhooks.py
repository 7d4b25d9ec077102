"""Mistakes in webhooks: what is sent twice or never, to whom, and what is believed of an answer."""

from mutants.mutant import Mutant

COURIER = "tests/webhooks/test_courier.py"
TRANSPORT = "tests/webhooks/test_transport.py"
EXPANSION = "tests/webhooks/test_expansion.py"
SIGNATURE = "tests/webhooks/test_signature.py"
PART = "tests/webhooks/test_webhooks_part.py"
CRASHES = "tests/webhooks/test_courier_crashes.py"

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
        "webhooks/courier.py:_Outgoing.startable",
        "min(len(self.waiting), AT_ONCE_PER_RECEIVER - self.active)",
        "len(self.waiting)",
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
        "webhooks/part.py:WebhooksPart.needs_worker",
        "max(int(idle * SECOND), STAYS_FOR)",
        "int(idle * SECOND)",
        f"{PART}::test_an_idle_worker_stays_until_the_usual_tries_are_over[sqlite]",
    ),
    Mutant(
        "webhooks/part.py:_due",
        " or (endpoint.fingerprint and not endpoint.holders)",
        "",
        f"{PART}::test_what_no_host_can_sign_is_no_work[sqlite]",
    ),
    Mutant(
        "webhooks/manage.py:resume_endpoint",
        "since=tx.events.last() if missed else endpoint.since",
        "since=endpoint.since",
        f"{COURIER}::test_one_that_says_gone_is_disabled_and_gets_nothing_more[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._take",
        "min(free, key=lambda each: each[0])[1]",
        "free[0][1]",
        f"{COURIER}::test_receivers_that_are_slow_hold_no_request_that_others_could_have[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._tidy",
        "return max(gone) < FORGOTTEN_AT_ONCE",
        "return True",
        f"{COURIER}::test_all_that_is_over_is_forgotten_however_much_that_is[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._write",
        '            if page is not None and not apply_page(tx, page):\n                self._behind = True\n            self._note_secrets(tx)\n            self._record(tx, results)\n            leased = self._lease(tx)\n        if page is not None:\n            reach("webhooks.expand")\n',
        '            if page is not None:\n                tx.webhooks.move_cursor(page.at, page.to)\n        if page is not None:\n            reach("webhooks.expand")\n        with self._store.write() as tx:\n            if page is not None:\n                tx.webhooks.add_deliveries(page.made)\n            self._note_secrets(tx)\n            self._record(tx, results)\n            leased = self._lease(tx)\n',
        f"{CRASHES}::test_a_courier_that_dies_there_loses_nothing[sqlite-webhooks.expand-1]",
    ),
    Mutant(
        "webhooks/courier.py:Courier._lease",
        "until=now + LEASE",
        "until=now + 1_000 * LEASE",
        f"{CRASHES}::test_a_courier_that_dies_there_loses_nothing[sqlite-courier.leased-1]",
    ),
    Mutant(
        "webhooks/part.py:_due",
        "return due_at + WAITS_AT_MOST + 1",
        "return None",
        f"{PART}::test_what_nobody_may_send_fails_after_seven_days_though_nothing_happens[True-sqlite]",
    ),
    Mutant(
        "webhooks/transport.py:Sending.end_if_late",
        "self._clock.monotonic() < self._end_at",
        "self._clock.monotonic() < self._end_at or self._is_late",
        f"{TRANSPORT}::test_one_that_is_late_before_it_has_a_socket_is_left_all_the_same",
    ),
    Mutant(
        "webhooks/transport.py:_retry_after",
        "return max(0, round(then * SECOND) - now)",
        "return max(0, round(then * SECOND))",
        f"{TRANSPORT}::test_when_a_server_wants_to_be_asked_again",
    ),
    Mutant(
        "webhooks/bodies.py:body_of",
        "    if len(text) <= LARGEST:\n        return text\n    return _dump(_without_job",
        "    return text\n    return _dump(_without_job",
        f"{EXPANSION}::test_a_large_body_goes_without_what_makes_it_large",
    ),
    Mutant(
        "webhooks/manage.py:rotate_secret",
        "old_fingerprint=endpoint.fingerprint if overlaps else None",
        "old_fingerprint=None",
        f"{SIGNATURE}::test_after_a_rotation_both_secrets_verify_until_the_overlap_is_over[sqlite]",
    ),
    Mutant(
        "webhooks/manage.py:replay_delivery",
        "        _refuse_disabled(tx.webhooks.endpoint(found.endpoint))\n",
        "",
        f"{COURIER}::test_all_that_failed_since_an_instant_is_replayed[sqlite]",
    ),
    Mutant(
        "webhooks/secret_file.py:SecretFile.all",
        "stamp != self._stamp",
        "self._stamp is None",
        f"{COURIER}::test_an_endpoint_without_its_secret_here_gets_nothing_until_it_comes[sqlite]",
    ),
    Mutant(
        "webhooks/courier.py:Courier.turn",
        "                    self._results.put(each)\n",
        "                    pass\n",
        f"{COURIER}::test_what_cannot_be_written_down_now_is_written_down_later_and_not_sent_again[sqlite]",
    ),
)
