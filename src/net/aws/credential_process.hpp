// Credentials that a command of the person prints: credential_process in a profile.
#pragma once

#include <dtrain/net/aws.hpp>

namespace dtrain::net {

// Runs the command with sh, for a minute at most; in the foreground it may ask the user at the terminal. Throws
// NoCredentials with what it said when it fails, is too slow or prints something else, and Stopped after a stop signal.
AwsCredentials run_credential_process(const std::string& command, const std::string& source);

}  // namespace dtrain::net
