"""HTTP/1.1 on a socket, with or without TLS. It knows no routes and passes requests to an ASGI handler.

Attacks by a client without a credential, the defence against each, and its tests (in tests/server/http;
docs/decisions/0011-http.md has the reasons):

- Hide a request in another one. Each byte has one reading, and ambiguous bytes end the connection.
  test_framing.py::test_ambiguous_bytes_are_refused_in_any_pieces,
  test_framing.py::test_llhttp_reads_the_same_requests_first, test_smuggling.py::test_no_request_is_hidden_in_another
- Pass the body that follows `Expect: 100-continue` or `Upgrade` off as the next request.
  test_bounds.py::test_a_body_that_waits_for_100_continue_is_not_read_as_the_next_request,
  test_bounds.py::test_an_offer_to_upgrade_is_ignored_and_the_body_read
- Send headers as trailers, which a proxy does not check. Trailers are dropped.
  test_bounds.py::test_trailers_are_dropped
- Name one server in the target and another in Host.
  test_bounds.py::test_a_target_that_is_not_a_path_of_this_server_is_a_bad_request
- Fill the memory. Heads, trailers and framing are counted before they are stored; a body waits until its handler reads.
  test_bounds.py::test_bytes_without_an_end_end_the_connection,
  test_bounds.py::test_a_head_in_one_read_is_bounded_too,
  test_smuggling.py::test_endless_trailers_do_not_block_other_clients,
  test_connection.py::test_a_body_that_its_handler_does_not_read_takes_little_memory,
  test_framing.py::test_no_bytes_are_held_for_a_silent_client
- Send many requests without waiting for answers. If they exceed a bound, they wait in the kernel of the client.
  test_bounds.py::test_requests_sent_ahead_hold_few_bytes_however_large_they_are
- Keep sending after the answer. The connection ends.
  test_bounds.py::test_small_chunks_after_an_answer_end_the_connection_soon,
  test_bounds.py::test_bytes_that_drip_after_the_last_answer_do_not_hold_the_connection
- Keep the event loop busy with small pieces. Other connections get their turn.
  test_bounds.py::test_many_small_chunks_let_others_have_their_turn
- Occupy a connection: by silence, by single bytes, or by reading slowly. Slow clients are disconnected.
  test_connection.py::test_silent_connections_are_ended,
  test_slow_clients.py::test_a_client_that_drips_bytes_loses_its_connection,
  test_slow_clients.py::test_an_unfinished_request_that_was_answered_loses_its_connection,
  test_slow_clients.py::test_a_client_that_does_not_read_its_answer_loses_its_connection
- Occupy all connections, also by endless TLS handshakes. Connections are limited by address and in total.
  test_slow_clients.py::test_one_address_does_not_take_all_connections,
  test_slow_clients.py::test_a_connection_beyond_the_bound_is_answered_503,
  test_tls.py::test_a_connection_counts_before_its_tls_handshake
- Forge its address, scheme or host. `X-Forwarded-*` is trusted only from trusted proxies.
  test_proxies.py::test_an_address_is_believed_from_trusted_proxies_alone,
  test_proxies.py::test_scheme_and_host_are_believed_from_trusted_proxies_alone,
  test_proxies.py::test_requests_for_other_names_are_refused
- Register a worker without the required certificate, or use an old TLS version. Both are refused.
  test_tls.py::test_workers_must_show_a_certificate_if_the_server_requires_one,
  test_tls.py::test_a_certificate_of_another_authority_is_refused, test_tls.py::test_old_tls_versions_are_refused
- Split an answer by a line break in a header, or have half an answer taken for a whole one. Both end the connection.
  test_connection.py::test_a_header_of_an_answer_is_one_line, test_connection.py::test_a_stream_that_breaks_is_cut_off

The application itself bounds large bodies, the request rates of credentials and the share of each namespace, also
under another ASGI server.
"""
