//! Every ordering of the racing words: what it pairs with, why it is enough, and which model misses it.
//!
//! Most of the argument is that each word is moved by read-modify-writes, which always act on the newest value of the word's
//! modification order, whatever their ordering says. An ordering is needed only where one word speaks of another, or of memory
//! that a call wrote. The constants stand at the top of each file, with the name of their role.
//!
//! `loom-tests/run --weaken` relaxes each of them, one half at a time, and prints the first model that fails. The last column is what it
//! printed; A and R are the Acquire and the Release half of an AcqRel. A dash means that no model failed, which is no licence to weaken:
//! loom never shows a stale read-modify-write, and a CAS whose word was loaded with Acquire already has most of what its own
//! Acquire could bring. There the argument stands alone, in the notes below.
//!
//! | role | operation | ordering | pairs with | why | caught by |
//! | --- | --- | --- | --- | --- | --- |
//! | `gate.read` | load, lost CAS | Acquire | `gate.move`, `gate.probe` | who meets a generation sees what its mover wrote before: a fresh pool, a lowered limit | gate: a new generation carries what was written before it |
//! | `gate.move` | CAS | AcqRel | `gate.read`, each other | publishes a generation; its mover comes after all that the word's generation did | A: signs: the end of a generation comes after the probes that left. R: gate: a new generation carries what was written before it |
//! | `gate.probe` | CAS | AcqRel | `gate.read`, `gate.move` | as above, for a slot: the next probe comes after the one that gave it back | A: signs: a probe slot carries what the last probe left. R: signs: a probing generation carries what its first prober wrote |
//! | `streak.read` | load, lost CAS | Acquire | `streak.write` | the gate read after a foreign tag is no older than that tag: its writer had read it | streak: a straggler of an unused streak cannot wipe the new one |
//! | `streak.write` | CAS | AcqRel | `streak.read` | R: the writer's reading of the gate comes before its tag. A: a failure comes after those that it counts | A: signs: a streak comes after the failures that it counts. R: streak: a straggler of an unused streak cannot wipe the new one |
//! | `calls.read` | load, lost CAS | Acquire | `calls.write` | as `streak.read` | calls: a straggler cannot wipe a new window |
//! | `calls.write` | CAS | AcqRel | `calls.read` | as `streak.write` | A: signs: a window comes after the calls that it counts. R: calls: a straggler cannot wipe a new window |
//! | `clean.read` | load, lost CAS | Acquire | `clean.end` | whoever finds nobody marking finds the failures that began before in the window, or gone from it; note 13 | clean: a failure that was seen is never skipped |
//! | `clean.set` | CAS | AcqRel | `clean.read` | note 13 | A: -. R: - |
//! | `clean.begin` | CAS | AcqRel | `clean.set` | note 13 | A: -. R: - |
//! | `clean.end` | `fetch_sub` | AcqRel | `clean.read` | R: the failure is in the window before nobody is marking. A: note 13 | A: -. R: clean: a failure that was seen is never skipped |
//! | `bucket.read` | load, lost CAS | Acquire | `bucket.write`, `bucket.count` | as `streak.read`; and a reader takes the failures first, so whoever sees a failure sees its call | buckets: a straggler of the old generation counts in no new bucket |
//! | `bucket.write` | CAS | AcqRel | `bucket.read` | R: as `streak.write`; a call is counted before its failure. A: note 1 | A: -. R: buckets: a straggler of the old generation counts in no new bucket |
//! | `bucket.count` | CAS | SeqCst | `bucket.sign`, `ring.look` | of a success that counts and a failure that looks for calls, one sees the other; note 16 | - |
//! | `bucket.sign` | load | SeqCst | `bucket.count`, `ring.look` | as above | ring: of a failure and the success that completes min_calls one sees both |
//! | `ring.look` | fence | SeqCst | each other, `bucket.count`, `bucket.sign` | as above, for outcomes that look further than at the sign | ring: of a failure and the success that completes min_calls one sees both |
//! | `lane.hint` | load, store | Relaxed | - | a hint: the bucket's own word confirms it, and is of the generation that the hint names | nothing to weaken |
//! | `lane.judged` | load, store | Relaxed | - | note 17 | nothing to weaken |
//! | `lane.known` | load, store | Relaxed | - | a number of calls that were counted, and stay so while its bucket is the newest: as good from any moment | nothing to weaken |
//! | `magazine.read` | load, lost CAS | Acquire | `magazine.give` | a call seen as settled has its ending counted | registry: a snapshot shows no success that was none |
//! | `magazine.take` | CAS | Acquire | `magazine.give` | a permit's taker comes after the call that gave it back | messages: a stashed permit carries it though the magazine looks untouched |
//! | `magazine.give` | `fetch_add` | AcqRel | take, close, withdraw | R: as above. A: note 2 | A: -. R: messages: a permit swept by a third carries it |
//! | `magazine.open` | CAS | AcqRel | `magazine.close` | R: note 3. A: note 2 | A: -. R: - |
//! | `magazine.close` | CAS | AcqRel | give, open | A: the stash goes to the pool with all that its givers wrote; and note 3. R: note 2 | A: messages: a permit swept by a third carries it. R: - |
//! | `magazine.withdraw` | CAS | AcqRel | `magazine.give` | A: what is brought home comes with its giver's writes; note 4. R: note 2 | A: -. R: - |
//! | `magazine.reset`, `laps.reset` | store | Relaxed | - | written while the slot is retired, published by `pool.reinstate`; note 7 | nothing to weaken |
//! | `pool.read` | load, lost CAS | Acquire | give, limit, reinstate | read before the magazines: a call that has left the pool's count is seen as settled | messages: a call that ends is in flight or settled at every look |
//! | `pool.take` | CAS | Acquire | give, reinstate | a permit's taker comes after the call that gave it back | messages: a permit of the pool carries what the last call left |
//! | `pool.announce` | CAS | AcqRel | give | A: as `pool.take`. R: note 3 | A: tenants: a caller that remembers gives back what it took from a stash. R: - |
//! | `pool.give` | `fetch_sub` | AcqRel | take, announce, retire | R: publishes what the call left. A: note 3 | A: -. R: messages: a call that ends is in flight or settled at every look |
//! | `pool.wait` | CAS | AcqRel | `pool.confirm`, give | A: the sweep of whoever begins to wait finds what was opened before its opener confirmed, and his look at the gate what tripped before. R: note 18 | A: waiting: a magazine that opens while one begins to wait hides nothing from him. R: - |
//! | `pool.confirm` | `fetch_add` of 0 | AcqRel | `pool.wait` | R: as above. A: whoever sees somebody waiting finds the queue made | A: -. R: waiting: a magazine that opens while one begins to wait hides nothing from him |
//! | `pool.leave` | CAS | AcqRel | `pool.read` | moved under the queue's lock, which orders it with the other moves of its bit; note 18 | A: -. R: - |
//! | `pool.limit` | CAS | AcqRel | `pool.read` | R: whoever enters by a raised limit sees what its setter wrote. A: note 5 | A: -. R: messages: a raised limit carries what its setter wrote |
//! | `pool.retire` | CAS | AcqRel | give | A: the evictor judges after the last return, and sees what its call recorded. R: note 5 | A: messages: a retired slot shows what the last call left. R: - |
//! | `pool.reinstate` | store | Release | `pool.take` | the tenant's key, policy and counters are written before it | messages: a reinstated slot carries what its owner wrote |
//! | `version.read` | load | Acquire | `version.raise` | whoever sees a version sees the limit lowered before it; read before the pool, so that an opener never stamps a version newer than its announcement; note 12 | - |
//! | `version.raise` | `fetch_add` | Release | `version.read` | as above | - |
//! | `laps.read` | load | Acquire | `laps.raise` | read before the magazines: a lap seen late misses 2^43 calls for a moment, one seen early would count them twice | messages: a lap is missed for a moment and never counted twice |
//! | `laps.raise` | `fetch_add` | Release | `laps.read` | after the addition that wrapped its magazine | messages: a lap is missed for a moment and never counted twice |
//! | `meetings.raise` | `fetch_add` | Relaxed | - | a count by itself: it publishes nothing, the stripes are published by their `OnceLock`; note 15 | nothing to weaken |
//! | `counter.add` | `fetch_add`, CAS | Release | `counter.read` | an ending is counted before its call is held, so it is seen by whoever sees the call | registry: a snapshot shows no success while a failed call is held |
//! | `counter.read` | load, lost CAS | Acquire | `counter.add` | as above | registry: a snapshot shows no success while a failed call is held |
//! | `counter.raise` | `fetch_max` | AcqRel | each other | the successes shown keep their maximum; note 6 | A: -. R: - |
//! | `counter.reset` | store | Release | `counter.read` | a new tenant starts at zero; note 7 | - |
//! | `brief.read` | load | Acquire | `brief.set` | whoever goes by a policy's brief sees what was put in force with it; whoever finds it shadowed finds the shadows, which a lock guards | signs: a policy carries what its setter wrote |
//! | `brief.set` | store | Release | `brief.read` | as above | signs: a policy carries what its setter wrote |
//! | `coarse.read`, `coarse.refresh` | load, `fetch_max` | Relaxed | - | a number by itself, which coherence keeps from going back; the clock of a model stands still | nothing to weaken |
//! | `budget.read`, `budget.write` | load, CAS | Relaxed | - | a count by itself: what is taken is judged on the value that the CAS replaces, and nobody reads other memory by it | nothing to weaken |
//! | `salt` | load, store | Relaxed | - | as `magazine.reset` | nothing to weaken |
//! | `stall.read` | load, lost CAS | Acquire | `stall.write` | the gate read next is no older than the one whose generation the word carries, as for `bucket.read` | stalls: a call of an earlier generation takes nothing of the next |
//! | `stall.write` | CAS | AcqRel | `stall.read` | R: as above. A: note 19 | A: -. R: stalls: a call of an earlier generation takes nothing of the next |
//! | `stall.older_read` | load, lost CAS | Acquire | `stall.older_write` | whoever sees what moved here no longer finds it in its bucket; the gate, as above | stalls: a call that moves to the older ones is counted once at most |
//! | `stall.older_write` | CAS | AcqRel | `stall.older_read` | R: as above. A: note 19 | A: -. R: stalls: a call that moves to the older ones is counted once at most |
//! | `stall.judged` | load, store | Relaxed | - | a note of a stripe to itself; whoever misses it judges once more | nothing to weaken |
//! | `stall.width_read` | load | Acquire | `stall.width_set` | whoever sees a width finds the generations over that had another; note 20 | - |
//! | `stall.width_set` | store | Release | `stall.width_read` | as above | - |
//! | `terms.read` | load | Acquire | `terms.set` | an index is stored after its policy is in the arena; note 8 | - |
//! | `terms.set` | store | Release | `terms.read` | as above | - |
//! | `sequence.read` | load | Acquire | `sequence.widen` | the widest number; note 9 | - |
//! | `sequence.widen` | `fetch_max` | AcqRel | `sequence.read` | as above | A: -. R: - |
//! | `epoch.read` | load | Acquire | `epoch.raise` | whoever remembers a slot finds its epoch changed once he met anything of the next tenant's; note 14 | - |
//! | `epoch.raise` | `fetch_add` | Release | `epoch.read` | as above | - |
//! | `handles.read` | load | Acquire | `handles.unpin` | who finds nobody holding a target sees what its holders did: a limit set by hand keeps it | registry: a target whose limit was set by hand stays |
//! | `handles.pin` | `fetch_add` | AcqRel | `handles.read` | note 10 | A: -. R: - |
//! | `handles.unpin` | `fetch_sub` | AcqRel | `handles.read` | R: as above. A: note 10 | A: -. R: registry: a target whose limit was set by hand stays |
//! | `taken.read` | load, lost CAS | Acquire | `taken.give` | note 11 | - |
//! | `sample.read`, `sample.add` | load, `fetch_add` | Relaxed | - | calls and what they took: a number by itself, that nothing is reached by; note 18 | nothing to weaken |
//! | `sample.take` | `fetch_sub` | Relaxed | - | note 18 | nothing to weaken |
//! | `end.read`, `end.set` | load, store | Relaxed | - | a hint; whoever goes by it looks again under the tenant's lock | nothing to weaken |
//! | `most.read`, `most.set` | load, store | Relaxed | - | a number by itself: what one call counts for at most | nothing to weaken |
//! | `taken.take` | `fetch_update` | AcqRel | `taken.give` | one word's order bounds the targets; raised under the key's shard. Note 11 | A: -. R: - |
//! | `taken.give` | `fetch_sub` | AcqRel | `taken.take` | note 11 | A: -. R: - |
//!
//! # Notes
//!
//! What no model of loom's shows, from the modification orders.
//!
//! 1. A bucket's count only rises under one start, so no other store made the word that the CAS replaces equal to the one that was loaded
//!    with Acquire: the CAS's own Acquire finds nothing that the load hadn't. It is kept for the words' likeness.
//! 2. Nobody reads another word afterwards whose value would hang on it. A releaser that finds the magazine closed goes on to the pool by a
//!    read-modify-write, and finds there the newest value, not one that it must have been told of. An opener stamps the version that it read
//!    before, and a wrong stamp is found by the next taker. A relaxed read-modify-write would still continue the release
//!    sequences of those that gave before it. Kept, so that closing and finding closed can be reasoned about as one order.
//! 3. An announcement raises `open`, and a close lowers it; lowered first, `open` would borrow from the bit above it, `retired`. Announce,
//!    then open (Release); find open and close (Acquire), then strike off: so the announcement happens before the strike, and comes before
//!    it in the pool's order. Relax the opening or the closing and nothing says so. Loom runs read-modify-writes of one word in the order
//!    in which it runs them, so it can't show the strike first. Needed. The pool's own Release at the announcement and Acquire at the strike
//!    add nothing to this chain; they keep the pool's moves alike.
//! 4. Whoever gives to a closed magazine brings home as many as it gave, so its own `pool.give` carries its call, whoever's permit it took.
//!    Only where the magazine was opened and closed in between does another bring it home; that one's load, with Acquire, saw the
//!    gift unless the word was equal before (a cancelled permit leaves `settled` as it was). Then this Acquire is what is left: needed.
//! 5. The limit's setter reads nothing after its CAS but what it writes itself, in the same order: the version, the magazines. Whoever
//!    finds a slot retired goes to the map, whose lock orders it; the slot tells it nothing. Kept.
//! 6. The value shown is the larger of the word's, which a read-modify-write reads newest, and the caller's own. Two snapshots of one
//!    thread, or of two that speak to each other, can't go back by coherence alone. Kept.
//! 7. The new tenant's first permit acquires `pool.reinstate`, whether it was asked for under the shard's lock or by a thread that remembers the
//!    slot. Nobody else writes the words meanwhile: a permit in a magazine, on its way there or from there, counts as out, so there is none
//!    when a slot retires. Two counts may come late and be the next tenant's, since no permit goes with them: a refusal, and the lap of
//!    a call that gave its permit back before it counted it.
//! 8. The arena isn't instrumented, so no model sees an index without its policy. With both relaxed a reader could hold an index before the
//!    arena's entry is visible to it, and judge by the default policy. Needed.
//! 9. Read and written under the tenant's lock, but for the last report of a tenant that is gone from the map, whose slot nobody else
//!    has. The lock orders them; kept, so that a number stays right if the lock goes.
//! 10. The count is raised under the shard's lock, which the evictor's second look takes, or from a handle that keeps it above zero: its
//!     order is that lock's. Lowering publishes (Release); that the last to leave comes after those before it is for the reader's
//!     Acquire, since read-modify-writes continue the release sequence of each. Kept.
//! 11. The bound is the word's own order. A stale load refuses a newcomer that a thread unrelated to the leaver couldn't know had room, and
//!     never admits one too many: the `fetch_update` reads the newest. The slot that a leaver made vacant is handed on under the lock of the
//!     free list; giving (Release) after that, and taking (Acquire) before looking there, make sure that whoever takes the leaver's room
//!     finds its slot, and makes no slot beyond the bound. A model can't show it: the lock orders both in every execution that loom runs.
//! 12. An opener that sees the new version takes its permit after the limit fell, in the pool's order. Relaxed, it might announce before
//!     that, under the old limit, and stamp the new version after the sweep has passed: a stash of the old limit in a magazine that
//!     counts as of the new one. The announcement is a read-modify-write, which loom never shows in the past. Needed.
//! 13. The sign stands only while no failure is in its window, by one pair: `clean.read`, and the Release of `clean.end`. A success sets it by
//!     a CAS on the word that it had loaded before it looked at the window. The word counts the failures that began, so none began
//!     between two equal values of it: one that begins after that load makes the CAS fail, or comes after it and takes the sign away. One
//!     that began before has ended, since nobody was marking then: its mark happens before the look, which found none. A success that
//!     goes by the sign reads nothing after it that would hang on it. Whoever has found a failure in the window (`calls.read`, `calls.write`) has
//!     its beginning behind him, so he sees no sign that is older. Nothing of this asks for an order of the beginning or of the setting with
//!     other words. Kept, so that a failure that takes a sign away comes after the success that set it. A new policy takes it away like a
//!     failure, once it is in force: a success that has seen that (`clean.end`, `clean.read`) reads the new policy after it, and one that
//!     hasn't fails to set the sign. A sign of an earlier generation or size is none.
//! 14. All that a caller can meet of the next tenant descends from `pool.reinstate` or from the `gate.move` that began its first generation, both
//!     later than the epoch, and was met with Acquire before the epoch is read. So the epoch's own pair adds nothing as long as it is read
//!     in that place; models with the steps in another order fail (`teeth.rs`). Kept.
//! 15. Which stripes a sweep goes by is decided by what its caller has seen. A stash that happened before it lies in a stripe that it sees, for its
//!     giver had found that there. One that comes meanwhile may be missed: `Saturated` may be said then (R21), a lowered limit leaves it behind with
//!     an old version, and a retirement fails on its announcement. Whoever retires a slot comes after all that was given back
//!     (`pool.give`, `pool.retire`), so it sees the stripes where that was done.
//!
//! 16. A window of time is written in two places: a success counts on its own stripe, a failure marks what all share, and each then reads the
//!     other's. That one of the two sees both needs one order of all four. Let the success miss the failure's sign: its load (SeqCst)
//!     comes before the fence that follows the sign's CAS, and its count (SeqCst) before its load; so what the failure reads after its fence
//!     holds the count. Two successes, two failures, and a call that isn't counted at once have the fence on both sides. A stripe's lane
//!     is made by a call that has the fence after it: where a failure misses the lane, that call's look comes after the failure's fence, and
//!     sees its sign and all that was counted in the lane meanwhile. Loom takes SeqCst accesses for AcqRel; the facade gives the models
//!     a fence before each of them, which orders more than the access does, and makes the one before the count idle. So the argument stands
//!     beside the models, not behind them.
//! 17. Who finds the sign as it was when his stripe was judged has read that sign himself, and no failure or policy came between: calls have,
//!     which lower every rate. The judgement read the policy after that sign, and a policy that comes later changes it. So the note
//!     carries nothing but itself.
//! 18. Samples are taken out by one thread at a time, in the order of the tenant's lock, and by subtracting what was read: the word never held less,
//!     since nobody else lowers it, and what was added meanwhile stays. A load that is stale takes less now and the rest the next time. That the
//!     limit moves once at the end of a window, and never after one set by hand, rests on that lock alone: both are done, and the end is
//!     looked at again, while it is held.
//! 19. As for a bucket's count in note 1: the word was loaded with Acquire before the CAS, or by the CAS that was lost. A bucket that has come back to
//!     equal bits meanwhile counts the same calls of the same tick, so what is moved is right either way. Kept, for the likeness.
//! 20. A width is one generation's. Its setter stores none, moves or rewrites the gate (AcqRel), and then stores the next. Who enters loads the gate
//!     and then the width. If its gate is of a generation that came after the setter's write, it has seen "none" by that, since
//!     each mover of the gate continues the release sequence: it finds none, or the next width. If it is an older one and the width is
//!     the next (Acquire), the gate is past it: what it counts is in words of a generation that is over, and a trip of that is stale. Relaxed,
//!     it could find the gate it knows still there as it resets a word of another generation. No model catches that, for the reset needs a
//!     word of a third generation.
//!
//! 18. That nobody waits in vain is one word's order: a permit is given back before `waiting` is set, and the CAS that would set it finds the
//!     permit, or after it, and the giver's own read-modify-write returns the bit. The bit is set, and cleared, under the queue's lock; whoever
//!     serves takes that lock after he gave, and finds there whoever set the bit that he saw. A permit granted there was
//!     taken from the pool with Acquire by whoever served, and carries on through the lock. Two others must not miss the beginning of a wait, since they
//!     change another word that the one who waits looks at: an opener its magazine, a trip the gate. Each writes that word and then
//!     confirms in the pool by a read-modify-write that changes nothing. Of the two, `pool.wait` and `pool.confirm`, one comes first: the
//!     later one sees the other's bit, or acquires what the other wrote before. With a load in place of the confirmation both could miss
//!     (the store-buffer pattern); the twins that do it are caught. The queue itself is made when the first call waits: the Release of
//!     `pool.wait`, with the Acquire of `pool.confirm` and `pool.give`, makes sure that whoever sees the bit finds it. Needed, and not shown, since
//!     models make it at once. What `pool.leave` would carry is under the queue's lock: kept for likeness.
//!
//! 19. A ramp adds no word. The limit that is low before the gate closes is the message of `gate.move` to `gate.read`, its sweep and version
//!     those of any lowering. All that raises or lowers a limit runs under one lock, so two of them are never mixed; admissions go by the
//!     pool's word alone.
//!
//! # Two words, one message
//!
//! One place rests on writing one word and then reading another back (the store-buffer pattern, which only `SeqCst` settles): the window of time,
//! note 16. A wait and what must not miss its beginning write one word and look at another as well, but by read-modify-writes of one of the two:
//! note 18. Three places pass a message through one word about another:
//!
//! - Lowering a limit writes the pool's limit, then the version. A taker reads the version first: with the new one it sees the new
//!   limit; with the old one it may take from a magazine opened under the old limit, until the sweep that follows has closed it. The call
//!   that lowered the limit returns after that sweep.
//! - A failure takes the sign away, then is written into the window. A success that sets it loads the sign's word first, then the window. No
//!   read-back: what it missed in the window it finds in the sign's word, whose CAS fails.
//! - A window word of another generation sends its finder back to the gate. The load order (word, then gate) and the writer's order (gate,
//!   then word) make the gate's reading no older than the tag.
