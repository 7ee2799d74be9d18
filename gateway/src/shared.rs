//! What the listeners share: the engine and the cap for good, the routes until the next reload.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use portcullis::{Engine, Rejection};

use crate::cap::Cap;
use crate::config::Config;
use crate::route::Routes;
use crate::stack::Stack;
use crate::upstream::{Client, Upstream, client};

/// The engine keeps every target for as long as the process runs: a policy must not be forgotten in a quiet hour.
const FOR_GOOD: Duration = Duration::from_hours(100 * 365 * 24);

/// The state of a gateway.
#[derive(Debug)]
pub(crate) struct Shared {
    engine: Arc<Engine<String>>,
    cap: Arc<Cap>,
    client: Client,
    live: ArcSwap<Live>,
    draining: AtomicBool,
}

/// What a reload replaces as a whole.
#[derive(Debug)]
pub(crate) struct Live {
    routes: Routes<Way>,
    targets: HashSet<String>,
    token: Option<String>,
}

/// Where a route leads.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// The target's services.
    pub(crate) stack: Arc<Stack>,
    /// Whether the route declares its answers as streams.
    pub(crate) stream: bool,
}

impl Shared {
    /// Makes the state, with each target of the configuration known to the engine.
    pub(crate) fn new(config: &Config) -> Result<Arc<Self>, Rejection> {
        let engine = Engine::builder().max_targets(MAX_TARGETS).idle_after(FOR_GOOD).forget_after(FOR_GOOD).build();
        let engine = Arc::new(engine);
        let client = client();
        let live = Live::new(config, &engine, &client)?;
        Ok(Arc::new(Self {
            cap: Cap::new(config.max_concurrent),
            live: ArcSwap::from_pointee(live),
            draining: AtomicBool::new(false),
            engine,
            client,
        }))
    }

    /// Puts another configuration in force. Targets keep their state; calls in flight go on.
    pub(crate) fn apply(&self, config: &Config) -> Result<(), Rejection> {
        let live = Live::new(config, &self.engine, &self.client)?;
        self.cap.set_limit(config.max_concurrent);
        self.live.store(Arc::new(live));
        Ok(())
    }

    pub(crate) fn engine(&self) -> &Engine<String> {
        &self.engine
    }

    pub(crate) fn cap(&self) -> &Arc<Cap> {
        &self.cap
    }

    pub(crate) fn live(&self) -> arc_swap::Guard<Arc<Live>> {
        self.live.load()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }
}

/// Far more than a file holds, so that reloads with other names go on for long; each costs a few hundred bytes.
const MAX_TARGETS: usize = 100_000;

impl Live {
    fn new(config: &Config, engine: &Arc<Engine<String>>, client: &Client) -> Result<Self, Rejection> {
        let mut upstreams = std::collections::HashMap::new();
        for target in &config.targets {
            engine.set_policy(target.name.as_str(), target.policy.clone())?;
            upstreams.insert(target.name.as_str(), Upstream::new(client.clone(), target));
        }
        let routes = config.routes.iter().filter_map(|route| {
            // A route without its target doesn't pass the checks of a configuration.
            let upstream = upstreams.get(route.target.as_str())?.clone();
            let stack = Stack::new(&route.target, route.admission.then_some(engine), upstream);
            let way = Way { stack: Arc::new(stack), stream: route.stream };
            Some((route.host.clone(), route.path.clone(), way))
        });
        Ok(Self {
            routes: Routes::new(routes),
            targets: config.targets.iter().map(|target| target.name.clone()).collect(),
            token: config.admin_token.clone(),
        })
    }

    pub(crate) fn routes(&self) -> &Routes<Way> {
        &self.routes
    }

    pub(crate) fn has_target(&self, name: &str) -> bool {
        self.targets.contains(name)
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }
}
