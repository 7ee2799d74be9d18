use http_body_util::BodyExt;
use portcullis::State;

use super::*;

fn config(targets: &[&str]) -> crate::Config {
    let tables = targets.iter().map(|name| {
        format!(
            "[[route]]\npath = \"/{name}\"\ntarget = \"{name}\"\n[target.{name}]\nupstream = [\"http://127.0.0.1:1\"]\n"
        )
    });
    tables.collect::<String>().parse().unwrap()
}

fn start() -> (Arc<Feed>, Arc<Shared>) {
    (Feed::new(), Shared::new(&config(&["a", "b"])).unwrap())
}

/// The next events in one piece: their ids and data.
async fn next(events: &mut Events) -> Option<Vec<(String, Value)>> {
    let piece = events.frame().await?.unwrap().into_data().unwrap();
    let text = String::from_utf8(piece.to_vec()).unwrap();
    let event = |event: &str| {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        Some((field("id: ")?, serde_json::from_str(&field("data: ")?).unwrap()))
    };
    Some(text.split_terminator("\n\n").filter_map(event).collect())
}

async fn one(events: &mut Events) -> (String, Value) {
    next(events).await.unwrap().remove(0)
}

#[tokio::test(start_paused = true)]
async fn everything_comes_first_and_then_what_changes() {
    let (feed, shared) = start();
    let mut events = feed.join(&shared, None).unwrap();
    let (_, state) = one(&mut events).await;
    let names: Vec<&Value> = state["targets"].as_array().unwrap().iter().map(|target| &target["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!((&state["targets"][0]["state"], &state["targets"][0]["limit"]), (&"CLOSED".into(), &Value::Null));
    shared.engine().force_open("b").unwrap();
    let (_, change) = one(&mut events).await;
    let [only] = change["targets"].as_array().unwrap().as_slice() else { panic!("{change}") };
    let fields: Vec<&String> = only.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["name", "state", "since_ms", "cause"]);
    assert_eq!(
        (&only["name"], &only["state"], &only["cause"]),
        (&"b".into(), &"FORCED_OPEN".into(), &"forced_open".into())
    );
    assert_eq!(change["transitions"][0]["to"], "FORCED_OPEN");
    let (_, quiet) = one(&mut events).await;
    assert_eq!((&quiet["targets"], &quiet["transitions"]), (&json!([]), &json!([])));
}

#[tokio::test(start_paused = true)]
async fn an_open_target_says_when_it_may_be_probed() {
    let (feed, shared) = start();
    let mut events = feed.join(&shared, None).unwrap();
    one(&mut events).await;
    for _ in 0..10 {
        shared.engine().admit("a").unwrap().failure();
    }
    let (_, change) = one(&mut events).await;
    let log = shared.engine().transitions();
    let trip = log.iter().find(|transition| transition.to == State::Open).unwrap();
    assert_eq!(change["targets"][0]["reopen_at_ms"], wall_ms(trip.wall + trip.wait.unwrap()));
    assert_eq!(change["transitions"][0]["evidence"]["failures"], 10);
    // A moment, not what is left of it: nothing changes while time goes by.
    assert_eq!(one(&mut events).await.1["targets"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn however_many_look_one_looks_at_the_engine_and_none_when_nobody_does() {
    let (feed, shared) = start();
    let mut all: Vec<Events> = (0..READERS).map(|_| feed.join(&shared, None).unwrap()).collect();
    assert!(feed.join(&shared, None).is_none());
    let mut ids = Vec::new();
    for events in &mut all {
        ids.push([one(events).await.0, one(events).await.0]);
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    drop(all);
    while feed.lock().is_ticking {
        tokio::time::sleep(INTERVAL).await;
    }
    let number = feed.lock().number;
    tokio::time::sleep(INTERVAL * 100).await;
    assert_eq!(feed.lock().number, number);
    // The first who comes finds it as it is now.
    shared.engine().disable("a").unwrap();
    let mut late = feed.join(&shared, None).unwrap();
    assert_eq!(one(&mut late).await.1["targets"][0]["state"], "DISABLED");
    assert_eq!(feed.lock().number, number + 1);
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_gets_what_they_missed_and_else_everything() {
    let (feed, shared) = start();
    let mut stays = feed.join(&shared, None).unwrap();
    let mut leaves = feed.join(&shared, None).unwrap();
    let (seen, _) = one(&mut leaves).await;
    one(&mut stays).await;
    drop(leaves);
    for name in ["a", "b"] {
        shared.engine().force_open(name).unwrap();
        one(&mut stays).await;
    }
    let missed = next(&mut feed.join(&shared, Some(&seen)).unwrap()).await.unwrap();
    let names: Vec<&Value> = missed.iter().map(|(_, change)| &change["targets"][0]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(next(&mut feed.join(&shared, Some(&missed[1].0)).unwrap()).await.unwrap(), []);
    for _ in 0..BEHIND {
        one(&mut stays).await;
    }
    for stranger in [seen.as_str(), "7-1", "", "x-y", "-", &format!("{}9", missed[1].0), &format!("{seen}-0")] {
        let (_, state) = one(&mut feed.join(&shared, Some(stranger)).unwrap()).await;
        assert_eq!(state["targets"].as_array().unwrap().len(), 2, "{stranger:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_reads_too_slowly_is_left_behind_and_holds_nothing() {
    let (feed, shared) = start();
    let mut slow = feed.join(&shared, None).unwrap();
    let mut quick = feed.join(&shared, None).unwrap();
    for _ in 0..=BEHIND + 1 {
        one(&mut quick).await;
    }
    assert_eq!(feed.lock().readers.len(), 1);
    let mut taken = 0;
    while next(&mut slow).await.is_some() {
        taken += 1;
    }
    assert_eq!(taken, BEHIND + 1);
}

#[tokio::test(start_paused = true)]
async fn a_reload_asks_everybody_to_come_again() {
    let (feed, shared) = start();
    let mut events = feed.join(&shared, None).unwrap();
    let (seen, _) = one(&mut events).await;
    shared.apply(&config(&["a", "c"])).unwrap();
    assert!(next(&mut events).await.is_none());
    let missed = next(&mut feed.join(&shared, Some(&seen)).unwrap()).await.unwrap();
    assert_eq!(missed[0].1["targets"], json!([{ "name": "b", "configured": false }, missed[0].1["targets"][1]]));
    assert_eq!(missed[0].1["targets"][1]["name"], "c");
}

#[tokio::test]
#[ignore = "prints figures, in a release build"]
async fn costs_of_a_tick() {
    let shared = Shared::new(&crate::costs::targets(1_000)).unwrap();
    let feed = Feed::new();
    crate::costs::price("a tick of /events, with 1,000 targets", 10, |_| drop(feed.lock().look(&shared)));
}
