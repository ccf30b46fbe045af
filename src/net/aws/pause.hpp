// How long to wait before the next try.
#pragma once

#include <dtrain/net/aws.hpp>

namespace dtrain::net {

// A random part of a growing pause ("full jitter"), so that many clients do not come back together; at least what the
// server asks for. None where the cause is mended.
std::chrono::milliseconds pause_after(int failed, AwsProblem problem, const AwsAnswer& answer, const AwsLimits& limits);
// Returns early after a stop signal.
void pause_between_tries(std::chrono::milliseconds pause, const AwsLimits& limits);

}  // namespace dtrain::net
