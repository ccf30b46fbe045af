// Gloo's connections among the ranks of a mesh of ours. Gloo's ports prove nothing: a process that reaches them can
// disturb the job, so this is for networks that one trusts.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <memory>
#include <string>

#include <dtrain/comm/communicator.hpp>

namespace dtrain::comm {

// The ranks send each other Gloo's addresses over `mesh`: no store, no port that is agreed on before. Throws PeerLost
// when a rank does not come by the deadline.
std::shared_ptr<::gloo::Context> connect_gloo(Communicator& mesh, const std::string& address,
                                              std::chrono::milliseconds deadline);

}  // namespace dtrain::comm
