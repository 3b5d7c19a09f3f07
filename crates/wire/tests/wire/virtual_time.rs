//! How the virtual clock moves.

use wire::virtual_time::{
    COMPUTED_CPU_NS, COMPUTED_NS, NS_PER_LATER_QUERY, NS_PER_QUERY, NS_PER_SECOND, PATIENT_QUERIES, computed_ns,
    query_ns,
};

const MONOTONIC: i32 = 1;
const THREAD_CPU: i32 = 3;

#[test]
fn short_computations_do_not_show() {
    assert_eq!(computed_ns(MONOTONIC, COMPUTED_NS - 1), 0);
    assert_eq!(computed_ns(THREAD_CPU, COMPUTED_CPU_NS - 1), 0);
}

#[test]
fn long_ones_show_within_a_factor_of_two_and_in_few_values() {
    for clock in [MONOTONIC, THREAD_CPU] {
        for ns in (COMPUTED_NS..20 * NS_PER_SECOND).step_by(7_000_001) {
            let shown = computed_ns(clock, ns);
            assert!(shown <= ns && ns < 2 * shown, "{ns} shows as {shown}");
        }
    }
    // Whoever is a third faster or slower sees the same.
    assert_eq!(computed_ns(MONOTONIC, 600_000_000), computed_ns(MONOTONIC, 900_000_000));
}

#[test]
fn whoever_asks_on_and_on_waits_no_longer_than_natively() {
    // A second, at 20 µs a round, as an interpreter would take.
    let (mut ns, mut queries) = (0, 0);
    while ns < NS_PER_SECOND {
        ns += query_ns(queries);
        queries += 1;
    }
    assert_eq!(query_ns(0), NS_PER_QUERY);
    assert_eq!(query_ns(PATIENT_QUERIES), NS_PER_LATER_QUERY);
    assert!(queries < 60_000, "{queries}");
}
