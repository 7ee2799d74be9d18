//! What works, but may not be meant.

use portcullis::Priority;

use super::{Config, Route, Target};

impl Config {
    /// What works, but may not be meant.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for target in &self.targets {
            let name = &target.name;
            if target.policy.max_in_flight() >= self.max_concurrent {
                notes.push(format!("{name} alone can fill the process: its max_in_flight isn't under max_concurrent"));
            }
            let asking: Vec<&Route> = self.routes.iter().filter(|route| route.target == *name).collect();
            if asking.is_empty() {
                notes.push(format!("no route leads to {name}"));
            } else {
                self.note_priorities(&mut notes, target, &asking);
            }
        }
        for route in self.routes.iter().filter(|route| !route.admission) {
            let (path, target) = (&route.path, &route.target);
            notes
                .push(format!("{path} goes to {target} unasked: what happens there isn't counted, and no limit holds"));
        }
        notes
    }

    /// Shares and waits that nobody's requests can come to.
    fn note_priorities(&self, notes: &mut Vec<String>, target: &Target, routes: &[&Route]) {
        let (name, policy) = (&target.name, &target.policy);
        let asking = || routes.iter().filter(|route| route.admission);
        let comes = |priority| asking().any(|route| route.may_be(priority));
        let share = |priority| policy.share_of(priority, 10_000);
        let stops = |priority| share(priority) < 10_000;
        let is_below = |priority: &Priority| *priority != Priority::Critical;
        let below = [Priority::Normal, Priority::Sheddable];
        for priority in below.into_iter().filter(|&priority| stops(priority) && !comes(priority)) {
            // A share that only follows from the other's is nobody's setting.
            if priority == Priority::Normal || share(priority) < share(Priority::Normal) {
                notes.push(format!("{name} has a {priority}_share, but no route to it has {priority} requests"));
            }
        }
        for route in asking().filter(|route| is_below(&route.priority) && !stops(route.priority)) {
            let (path, priority) = (&route.path, route.priority);
            notes
                .push(format!("requests of {path} are {priority}, but {name} has no {priority}_share to stop them at"));
        }
        if policy.max_waiting() > 0 && !comes(Priority::Critical) {
            notes.push(format!("{name} has max_waiting, but only critical requests wait, and no route to it has any"));
        }
        if policy.max_waiting() >= self.max_concurrent {
            notes.push(format!("{name} alone can fill the process: its max_waiting isn't under max_concurrent"));
        }
    }
}

impl Route {
    /// Whether its requests may have this priority.
    fn may_be(&self, priority: Priority) -> bool {
        priority == self.priority || (self.priority_header && priority < self.priority)
    }
}
