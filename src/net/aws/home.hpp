// Services that are one for all regions of a partition have their home in one of these.
#pragma once

#include <string>

#include <dtrain/net/aws.hpp>

namespace dtrain::net {

// The region that signatures for the service name.
std::string signing_region(const AwsService& service, const std::string& region);

}  // namespace dtrain::net
