// Advice for the user about a plan.
#pragma once

#include <dtrain/cluster/plan.hpp>

namespace dtrain::cluster {

void add_notes(const Spec& spec, const Account& account, Plan& plan);

}  // namespace dtrain::cluster
