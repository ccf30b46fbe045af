// Machines that have shut themselves down: a time limit, idleness, the end of the last job, a boot that failed. A
// reconciler starts none in their place: it would undo what the limits are for, time and again.
#pragma once

#include <string>

#include <dtrain/cluster/reconcile.hpp>

namespace dtrain::cluster {

// What EC2 and the options of the cluster say.
bool shut_itself_down(const Node& node);
bool has_time_limit(const Fleet& fleet);  // --ttl or --autostop
// Among those that EC2 still lists; nullptr: none.
const Node* latest_ended_head(const Fleet& fleet);

// Remembers what left by itself, because EC2 lists a machine for an hour only, and forgets what was started again.
void note_left(const Observed& observed, HealMemory& memory);
// As how many workers those count that left by themselves.
int count_left(const HealMemory& memory, bool base);
std::string left_text(const HealMemory& memory);  // a sentence about these workers; empty: there are none
// Why no head is started instead of one that is gone; empty: one is.
std::string why_no_head(const Observed& observed, const HealMemory& memory);

}  // namespace dtrain::cluster
