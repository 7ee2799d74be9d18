//! What the listeners share: the engine and the cap for good, the routes until the next reload.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use portcullis::call::{CallCounts, CallPolicy, Caller};
use portcullis::{Engine, ObserverGuard, Policy, Transition};
use portcullis_numbers::routes::Routes;

use crate::admin::Drills;
use crate::cap::Cap;
use crate::client::Clients;
use crate::config::{Config, Route, Target};
use crate::hidden::Hidden;
use crate::metrics::Metrics;
use crate::shadows;
use crate::stack::{Admission, Asks, Stack};
use crate::upstream::Upstream;
use crate::watch::{Watch, Watches};
use crate::webhook::Webhooks;
use crate::whole::{self, Settle, Whole};

/// The engine keeps every target for as long as the process runs: a policy must not be forgotten in a quiet hour.
const FOR_GOOD: Duration = Duration::from_hours(100 * 365 * 24);

/// The state of a gateway.
#[derive(Debug)]
pub(crate) struct Shared {
    lasting: Lasting,
    cap: Arc<Cap>,
    live: ArcSwap<Live>,
    draining: AtomicBool,
    drills: Drills,
    webhooks: Webhooks,
    metrics: Metrics,
}

/// What is the same for every configuration: targets that stay in it keep their state, budgets, answers and connections.
#[derive(Debug)]
struct Lasting {
    engine: Arc<Engine<String>>,
    caller: Caller,
    layer: whole::Layer,
    clients: Clients,
    watches: Arc<Watches>,
    _observes: ObserverGuard,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a reload replaces as a whole.
pub(crate) struct Live {
    routes: Routes<Way>,
    // As configured.
    targets: HashMap<String, CallPolicy>,
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
    pub(crate) fn new(config: &Config) -> Result<Arc<Self>, BoxError> {
        let engine = Engine::builder().max_targets(MAX_TARGETS).idle_after(FOR_GOOD).forget_after(FOR_GOOD).build();
        let engine = Arc::new(engine);
        let caller = Caller::builder(Arc::clone(&engine)).build()?;
        let layer = whole::layer(caller.clone());
        let watches = Arc::new(Watches::default());
        let watched = Arc::clone(&watches);
        let observes = engine.observe(move |transition: &Transition| watched.moved(transition));
        let clients = Clients::default();
        let lasting = Lasting { engine, caller, layer, clients, watches, _observes: observes };
        // Before the first target, so that no transition is missed.
        let metrics = Metrics::new(&lasting.engine, config.metrics_targets);
        let live = Live::new(config, &lasting)?;
        let webhooks = Webhooks::default();
        webhooks.apply(&lasting.engine, &config.webhooks);
        Ok(Arc::new(Self {
            lasting,
            cap: Cap::new(config.max_concurrent),
            live: ArcSwap::from_pointee(live),
            draining: AtomicBool::new(false),
            drills: Drills::default(),
            webhooks,
            metrics,
        }))
    }

    /// Puts another configuration in force. Targets keep their state; calls in flight go on.
    pub(crate) fn apply(&self, config: &Config) -> Result<(), BoxError> {
        let live = Live::new(config, &self.lasting)?;
        for gone in self.live().targets.keys().filter(|name| !live.has_target(name)) {
            shadows::apply(self.engine(), gone, &[])?;
        }
        self.cap.set_limit(config.max_concurrent);
        self.metrics.set_max_targets(config.metrics_targets);
        self.live.store(Arc::new(live));
        self.webhooks.apply(&self.lasting.engine, &config.webhooks);
        Ok(())
    }

    pub(crate) fn engine(&self) -> &Engine<String> {
        &self.lasting.engine
    }

    /// What became of the whole calls to a target.
    pub(crate) fn calls(&self, target: &str) -> Option<CallCounts> {
        self.lasting.caller.counts(target)
    }

    /// What the gateway itself saw of a target; none of a target that no configuration ever had.
    pub(crate) fn watch(&self, target: &str) -> Option<Arc<Watch>> {
        self.lasting.watches.get(target)
    }

    pub(crate) fn cap(&self) -> &Arc<Cap> {
        &self.cap
    }

    pub(crate) fn live(&self) -> arc_swap::Guard<Arc<Live>> {
        self.live.load()
    }

    pub(crate) fn drills(&self) -> &Drills {
        &self.drills
    }

    pub(crate) fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
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

/// All that may come to be in force for a target.
fn policies(target: &Target) -> impl Iterator<Item = &Policy> {
    std::iter::once(&target.policy).chain(target.shadows.iter().map(|(_, policy)| policy))
}

impl Lasting {
    fn admission(&self, route: &Route, target: &Target, upstream: &Upstream) -> Admission {
        let watch = self.watches.of(&target.name);
        Admission {
            engine: Arc::clone(&self.engine),
            settle: Settle::new(),
            whole: Whole::new(&self.layer, upstream, target.call.probe_timeout(), &watch),
            watch,
            is_whole: target.is_whole(),
            asks: Asks {
                priority: route.priority,
                heeds_header: route.priority_header,
                // Also where a shadow would, which may be promoted.
                may_wait: policies(target).any(|policy| policy.max_waiting() > 0),
            },
        }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { routes, targets, token } = self;
        let token = Hidden::of(token.as_deref());
        f.debug_struct("Live").field("routes", routes).field("targets", targets).field("token", &token).finish()
    }
}

impl Live {
    fn new(config: &Config, lasting: &Lasting) -> Result<Self, BoxError> {
        let mut targets = HashMap::new();
        for target in &config.targets {
            // Before the engine has it, so that no transition is missed.
            lasting.watches.of(&target.name);
            lasting.engine.set_policy(target.name.as_str(), target.policy.clone())?;
            shadows::apply(&lasting.engine, &target.name, &target.shadows)?;
            let policy = whole::in_force(&target.call, target.deadline().is_some());
            lasting.caller.set_policy(target.name.clone(), policy)?;
            let client = lasting.clients.within(target.connect_timeout);
            targets.insert(target.name.as_str(), (target, Upstream::new(client, target)));
        }
        let routes = config.routes.iter().filter_map(|route| {
            // A route without its target doesn't pass the checks of a configuration.
            let (target, upstream) = targets.get(route.target.as_str())?;
            let admission = route.admission.then(|| lasting.admission(route, target, upstream));
            let stack = Stack::new(&route.target, admission, upstream.clone(), target.deadline());
            let way = Way { stack: Arc::new(stack), stream: route.stream };
            Some((route.host.clone(), route.path.clone(), way))
        });
        Ok(Self {
            routes: Routes::new(routes),
            targets: config.targets.iter().map(|target| (target.name.clone(), target.call.clone())).collect(),
            token: config.admin_token.clone(),
        })
    }

    pub(crate) fn routes(&self) -> &Routes<Way> {
        &self.routes
    }

    pub(crate) fn has_target(&self, name: &str) -> bool {
        self.targets.contains_key(name)
    }

    pub(crate) fn call_policy(&self, target: &str) -> Option<&CallPolicy> {
        self.targets.get(target)
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }
}
