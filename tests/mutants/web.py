"""Mistakes in what the server takes and says."""

from mutants.mutant import Mutant

QUERIES = "tests/web/test_queries.py"
MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "web/shapes.py:_from_text",
        'return text.split(",")',
        'return [each for each in text.split(",") if each]',
        f"{QUERIES}::test_what_is_wrong_is_said",
    ),
    Mutant(
        "web/shapes.py:read_query",
        "[*read.get(name, ()), *value]",
        "value",
        f"{QUERIES}::test_a_list_comes_whole_or_in_parts",
    ),
    Mutant(
        "web/shapes.py:_of_text",
        'schema.get("minLength", 0)',
        "0",
        f"{QUERIES}::test_what_is_wrong_is_said",
    ),
    Mutant(
        "web/openapi.py:operation_id",
        '(["legacy"] if route.old else [])',
        "[]",
        "tests/web/test_openapi.py",
    ),
    Mutant(
        "web/guard.py:Guard._host",
        "if not known and host not in self._origins:",
        "if not name:",
        "tests/web/test_walk.py::test_under_another_host_name_nobody_is_answered",
    ),
    Mutant(
        "web/guard.py:Guard._refuse_other_origin",
        "if site is None or site in SAME:",
        "if site != 'cross-site':",
        "tests/web/test_walk.py::test_pages_of_others_are_refused_whatever_they_send",
    ),
    Mutant(
        "web/guard.py:Guard._refuse_other_origin",
        'if visitor.method == "GET" and visitor',
        "if visitor",
        "tests/web/test_guard.py::test_a_form_of_another_site_gets_no_such_page",
    ),
    Mutant(
        "web/application.py:Application.look_up",
        "is_use = not (found.route.stream and admitted.principal.session)",
        "is_use = True",
        "tests/web/test_guard.py::test_a_stream_is_no_use_of_a_session",
    ),
    Mutant(
        "web/application.py:Exchange.read_body",
        "if len(read) <= LARGEST < len(read) + len(piece) <= route.largest:",
        "if route.largest > LARGEST and not read:",
        "tests/web/test_http_limits.py::test_a_slow_graph_holds_up_no_other",
    ),
    Mutant(
        "web/server.py:FewOfNobody.filter",
        "self._written >= LINES_OF_NOBODY",
        "self._written > LINES_OF_NOBODY",
        "tests/web/test_serve.py::test_the_next_line_says_how_many_were_left_out",
    ),
    Mutant(
        "web/tail.py:EventListener.take",
        "        if self._batches:\n            self._news.set()\n",
        "",
        "tests/web/test_event_stream.py::test_one_who_is_late_takes_what_came_in_parts",
    ),
    Mutant(
        "web/guard.py:Guard._session",
        "entry is not None and entry.host == host_name(host)",
        "entry is not None",
        "tests/web/test_guard.py::test_a_session_counts_under_the_host_name_of_its_sign_in_alone",
    ),
    Mutant(
        "web/guard.py:Guard._refuse_unclear",
        "> LARGEST_HEAD",
        "> 2 * LARGEST_HEAD",
        "tests/web/test_requests.py::test_heads_are_small",
    ),
    Mutant(
        "web/guard.py:refuse_forged",
        "shown is None or not hmac.compare_digest(admitted.csrf.encode(), shown.encode())",
        "shown is None",
        "tests/web/test_walk.py::test_a_session_changes_nothing_without_its_own_mark",
    ),
    Mutant(
        "web/route.py:Right.require",
        "if self.person and not principal.is_person:",
        "if self.person and not principal.name:",
        "tests/web/test_walk.py::test_where_a_person_decides_an_agent_is_refused",
    ),
    Mutant(
        "web/handlers/jobs.py:edit",
        "    call.refuse_bound_to_templates()\n",
        "",
        "tests/web/test_guard.py::test_a_token_of_a_template_changes_nothing_else_of_its_own_jobs",
    ),
    Mutant(
        "web/handlers/jobs.py:approve",
        "call.required_revision()",
        "call.revision",
        "tests/web/test_decisions.py::test_without_what_was_seen_nothing_is_approved",
    ),
    Mutant(
        "web/protocol.py:BoundedProtocol._is_whole",
        "(h11.IDLE, h11.SEND_BODY)",
        "(h11.SEND_BODY,)",
        "tests/web/test_http_limits.py::test_a_dripped_head_after_a_whole_request_is_closed",
    ),
    Mutant(
        "web/protocol.py:BoundedProtocol._check_reading",
        "self.transport.abort()",
        "self.transport.close()",
        "tests/web/test_http_limits.py::test_an_unread_answer_does_not_stay_for_ever",
    ),
    Mutant(
        "web/streams.py:_newest",
        "client.events.last()",
        "client.events.last() - 1",
        "tests/web/test_event_stream.py::test_a_stream_begins_now_and_shows_each_event_once",
    ),
    Mutant(
        "web/application.py:Application._wait",
        "if gone.done():",
        "if news.ended:",
        "tests/web/test_http_limits.py::test_a_principal_has_32_requests_at_once",
    ),
    Mutant(
        "web/handlers/legacy.py:_old",
        "quote(successor)",
        "successor",
        "tests/web/test_legacy.py::test_an_old_route_is_found_by_names_that_are_not_latin",
    ),
    Mutant(
        "web/tail.py:EventTail.age",
        "max(self.looked_at, self._wanted_at)",
        "self._wanted_at",
        "tests/web/test_ready.py::test_it_is_not_ready_while_somebody_listens_and_no_event_can_be_read",
    ),
    Mutant(
        "web/handlers/collections.py:trigger_schedule",
        ", key=call.key",
        "",
        "tests/web/test_collections_api.py::test_a_trigger_that_is_sent_twice_makes_one_job[sqlite]",
    ),
    Mutant(
        "web/metrics.py:Metrics.happened",
        "self._replayed = True",
        "pass",
        "tests/web/test_metrics.py::test_a_delivery_that_is_sent_again_is_counted_again",
    ),
    Mutant(
        "web/handlers/server.py:ready",
        "    context.store.check_schema()\n",
        "",
        "tests/web/test_ready.py::test_it_is_not_ready_when_another_headway_has_changed_the_schema[sqlite]",
    ),
)
