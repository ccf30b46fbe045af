// Advice for the user about a plan.
#pragma once

#include <string>

#include <dtrain/cluster/plan.hpp>

namespace dtrain::cluster {

// What a failed `up` leaves: "head (i-1), w0001 (i-2) keep running and cost $0.17 an hour".
std::string remains_text(const Fleet& fleet, const PriceList& prices);

void add_notes(const Spec& spec, const Account& account, const Fleet& fleet, Plan& plan);

}  // namespace dtrain::cluster
