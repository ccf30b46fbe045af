// How long to wait before the next try.
#pragma once

#include <dtrain/net/aws.hpp>

namespace dtrain::net {

// A random part of a growing pause ("full jitter"), so that many clients do not come back together; at least what the
// server asks for. None where the cause is mended. Returns early when the process is told to stop.
void pause_between_tries(int failed, AwsProblem problem, const AwsAnswer& answer, const AwsLimits& limits);

}  // namespace dtrain::net
