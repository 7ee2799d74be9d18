//! Every ordering of the racing words: what it pairs with, and why it is enough.
//!
//! Most of the argument is that each word is moved by read-modify-writes, which always act on the newest value of the word's
//! modification order, whatever their ordering says. An ordering is needed only where one word speaks of another, or of memory
//! that a call wrote. The constants stand at the top of each file.
//!
//! | word | operation | ordering | pairs with | why |
//! | --- | --- | --- | --- | --- |
//! | gate | load | Acquire | `MOVE` | who meets a generation sees what its mover wrote before: a fresh pool, a lowered limit |
//! | gate | CAS (`MOVE`) | AcqRel | load, `MOVE` | publishes a generation; the mover judged the word that it replaces |
//! | streak, calls, bucket | load | Acquire | `WRITE` | the gate read after a foreign tag is no older than that tag: its writer had read it |
//! | streak, calls, bucket | CAS (`WRITE`) | AcqRel | load | the writer's reading of the gate comes before its tag |
//! | bucket | calls before failures | AcqRel | load | a reader takes the failures first, so whoever sees a failure sees its call |
//! | magazine | CAS that takes | Acquire | `GIVE` | a permit's taker comes after the call that gave it back |
//! | magazine | `fetch_add`, CAS that gives | AcqRel | take, close | as above; a releaser that finds it closed comes after the closer |
//! | pool | CAS that takes | Acquire | `give` | as for the magazine |
//! | pool | announce, give, limit, retire | AcqRel | each other | one word's order decides who was first; retiring comes after the last return |
//! | pool | reinstate | Release | take | the tenant's key, policy and counters are written before it |
//! | version | add | Release | load | after the limit: whoever sees the version sees the limit lowered before it |
//! | version | load | Acquire | add | read before the pool, so that an opener never stamps a version newer than its announcement |
//! | counters | add / load | Release / Acquire | each other | an ending is counted before its call settles, so it is seen by whoever sees the call |
//! | laps | add / load | Release / Acquire | each other | read before the magazines: a lap seen late misses 2^43 calls for a moment, one seen early would count them twice; the successes shown keep their maximum |
//! | held, `success_seen` | add, `fetch_max` | Release, AcqRel | load | as for counters: every race shows fewer successes than there were, never more |
//! | salt, `settled_before` | store / load | Relaxed | - | written while the slot is retired, published by the pool's reinstatement |
//! | taken | `fetch_update`, sub / load | AcqRel / Acquire | each other | one word's order bounds the targets; raised under the key's shard |
//! | terms | store / load | Release / Acquire | each other | an index is stored after its policy is in the arena |
//! | sequence | `fetch_max` | AcqRel | load | the widest number; every mover comes by once |
//! | handles | add / sub / load | AcqRel / Acquire | each other | raised only under the shard's lock or from a live handle, and judged under that lock |
//!
//! # Two words, one message
//!
//! Nothing rests on writing one word and then reading another back (the store-buffer pattern, which only `SeqCst` settles). Two places pass a
//! message through one word about another:
//!
//! - Lowering a limit writes the pool's limit, then the version. A taker reads the version first: with the new one it sees the new
//!   limit; with the old one it may take from a magazine opened under the old limit, until the sweep that follows has closed it. The call
//!   that lowered the limit returns after that sweep.
//! - A window word of another generation sends its finder back to the gate. The load order (word, then gate) and the writer's order (gate,
//!   then word) make the gate's reading no older than the tag.
//!
//! The models in `loom-tests` check these under weakened schedules, each with a broken twin that must fail. Loom never shows a stale
//! read-modify-write, so an ordering that no model catches isn't thereby superfluous: it rests on the argument above.
