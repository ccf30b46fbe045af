// Events in words.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>

namespace dtrain::board {

// One sentence for a line of events.jsonl: what happened and why. Never throws; an unknown event is told by its
// members.
std::string explain(const Json& event);

// How much an event matters to who looks for the cause of something.
enum class Weight { detail, change, trouble };
Weight weight_of(const Json& event);

// The member "epoch" or "step" of an event, counted from 1 as the board counts everywhere; events count from 0. A
// missing one counts as the first.
double counted_from_one(const Json& event, std::string_view name);

// A member as text: strings as they are, lists with commas, numbers as numbers; empty where it is missing.
std::string member_text(const Json& event, std::string_view name);
double member_number(const Json& event, std::string_view name, double otherwise = 0);

}  // namespace dtrain::board
