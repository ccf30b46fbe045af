// Advice for the user about a plan.
#pragma once

#include <string>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// What a failed `up` leaves: "head (i-1), w0001 (i-2) keep running and cost $0.17 an hour". `known`: what it made and
// found. `now`: what AWS shows, which may lack the latest machines and has those that another command has ended.
std::string remains_text(Fleet known, const Fleet& now, const PriceList& prices);
// The hint of a NoCapacity, with what helps where a subnet has no free address.
std::string capacity_hint(std::string hint, const Launched& launched);

void add_notes(const Spec& spec, const Account& account, const Fleet& fleet, Plan& plan);

}  // namespace dtrain::cluster
