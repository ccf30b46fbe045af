// A communicator whose reductions are added up on GPUs and travel by NCCL.
#pragma once

#include <chrono>
#include <memory>

#include <dtrain/comm/communicator.hpp>
#include <dtrain/comm/mesh.hpp>

namespace dtrain::comm {

namespace nccl {

// For the ranks' meeting in NCCL: a library that is cold, or many hosts, can need much longer than the connections of a
// mesh, and a generation that fails here would fail again in the next one.
std::chrono::milliseconds meeting_time(std::chrono::milliseconds connect_deadline,
                                       std::chrono::milliseconds operation_deadline);

}  // namespace nccl

// Everything but the floats of reductions goes over `mesh`. Sums are the same bits as those of `mesh`, unless `site`
// allows any order. The ranks meet in NCCL at their first reduction, on the thread that reduces: beside the transfers
// of another communicator that could block both. `site`'s device is used by one communicator at a time. A wait for what
// ranks compute lasts `operation_deadline` for each shard.
std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> mesh, const NcclSite& site,
                                                     std::chrono::milliseconds connect_deadline,
                                                     std::chrono::milliseconds operation_deadline);

}  // namespace dtrain::comm
