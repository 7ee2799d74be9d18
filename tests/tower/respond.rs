//! Refusals as responses.

use std::time::Duration;

use portcullis::Rejection;
use portcullis::tower::{respond, respond_grpc};

use crate::common::{ms, secs};

const ALL: [Rejection; 6] = [
    Rejection::Open { retry_after: Duration::from_millis(1_200) },
    Rejection::Probing { retry_after: Duration::from_secs(10) },
    Rejection::Saturated { limit: 64 },
    Rejection::Shed { priority: portcullis::Priority::Normal },
    Rejection::ForcedOpen,
    Rejection::Exhausted { max_targets: 10_000 },
];

#[test]
fn every_refusal_is_a_503_with_a_json_body() {
    for rejection in ALL {
        let response = respond(&rejection);
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (503, &"application/json".parse().unwrap())
        );
        let body: serde_json::Value = serde_json::from_str(response.body()).unwrap();
        assert_eq!(body["code"], rejection.code());
        assert_eq!(body["reason"], rejection.reason());
        assert_eq!(body["message"], rejection.to_string());
        let millis = rejection.retry_after().map(|after| after.as_millis() as u64);
        assert_eq!(body["retry_after_ms"].as_u64(), millis);
        assert_eq!(body.as_object().unwrap().len(), 4);
        assert_eq!(response.headers().contains_key("retry-after"), millis.is_some());
    }
}

#[test]
fn r15_the_header_is_whole_seconds_rounded_up() {
    for (after, seconds) in [
        (Duration::from_nanos(1), "1"),
        (ms(1), "1"),
        (ms(999), "1"),
        (secs(1), "1"),
        (secs(1) + Duration::from_nanos(1), "2"),
        (ms(59_001), "60"),
        (secs(31_536_000), "31536000"),
    ] {
        let response = respond(&Rejection::Open { retry_after: after });
        assert_eq!(response.headers()["retry-after"], seconds, "{after:?}");
    }
}

#[test]
fn r15_the_body_s_milliseconds_are_no_sooner_than_the_deadline() {
    let response = respond(&Rejection::Open { retry_after: ms(1_200) + Duration::from_nanos(1) });
    let body: serde_json::Value = serde_json::from_str(response.body()).unwrap();
    assert_eq!(body["retry_after_ms"], 1_201, "at 1,200 ms a caller would be refused again");
}

#[test]
fn every_refusal_is_unavailable_in_grpc() {
    for rejection in ALL {
        let response = respond_grpc(&rejection);
        assert_eq!((response.status().as_u16(), response.body().as_str()), (200, ""));
        let headers = response.headers();
        assert_eq!(
            (&headers["content-type"], &headers["grpc-status"]),
            (&"application/grpc".parse().unwrap(), &"14".parse().unwrap())
        );
        assert_eq!(headers["grpc-message"], format!("{}: {rejection}", rejection.code()));
    }
}

#[test]
fn every_duration_makes_a_response() {
    for after in [Duration::ZERO, Duration::from_nanos(1_500), Duration::from_micros(3), Duration::MAX] {
        let rejection = Rejection::Open { retry_after: after };
        assert!(serde_json::from_str::<serde_json::Value>(respond(&rejection).body()).is_ok(), "{after:?}");
        assert!(respond_grpc(&rejection).headers().contains_key("grpc-message"), "{after:?}");
    }
}
