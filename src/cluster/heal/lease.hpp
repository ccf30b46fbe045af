// The lease by which one machine at a time keeps the cluster: a tag of its security group (wish.hpp).
#pragma once

#include <functional>
#include <string>

#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {

// Writes the lease of `holder`, and these tags with it. An empty holder lets another one act at once.
void write_lease(net::AwsCalls& aws, const Fleet& fleet, const std::string& holder, UnixTime now, Tags tags = {});
// Writes the lease, and looks until AWS shows one. Where two write at the same time, the one that wrote last has it:
// `fleet` shows which.
void claim_lease(const AwsContext& context, Fleet& fleet, const std::string& holder,
                 const std::function<UnixTime()>& clock, const std::function<Fleet()>& read);

}  // namespace dtrain::cluster
