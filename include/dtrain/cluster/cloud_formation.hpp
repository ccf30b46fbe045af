// The same cluster as a CloudFormation template, for reviews.
#pragma once

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// The longest template that a command or the console takes; a longer one is read from S3.
inline constexpr std::size_t kMostDirectBytes = 51'200;

// Pure. The stack is a cluster that `add` and `down` know. The template leaves out fallbacks to other zones and types,
// which CloudFormation cannot express. Throws UsageError for --spot prefer and --min-workers, which it cannot express
// either, and for more resources or bytes than CloudFormation takes.
Json cloud_formation_template(const ClusterRequest& request, const Account& account);

}  // namespace dtrain::cluster
