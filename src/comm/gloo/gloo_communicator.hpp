// A communicator whose reductions travel over Gloo.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include <dtrain/comm/communicator.hpp>

namespace dtrain::comm {

// Everything but the frames of reductions goes over `mesh`. Sums are the same bits as those of `mesh`; they are sent
// once all leaves are ready, not while they are computed. `address`: see gloo_context.hpp.
std::unique_ptr<Communicator> make_gloo_communicator(std::unique_ptr<Communicator> mesh, const std::string& address,
                                                     std::chrono::milliseconds connect_deadline,
                                                     std::chrono::milliseconds operation_deadline,
                                                     std::stop_token cancel);

}  // namespace dtrain::comm
