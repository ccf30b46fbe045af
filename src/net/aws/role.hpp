// Credentials that STS gives for a role.
#pragma once

#include <dtrain/net/aws.hpp>

#include "profile.hpp"

namespace dtrain::net {

// `source`: who asks for the role of the profile. Both throw AwsError for what STS refuses.
AwsCredentials assume_role(const AwsSettings& settings, const AwsProfile& profile, const AwsCredentials& source);

// A role for the holder of the token in a file, as in Kubernetes.
struct WebIdentity {
  std::string token_file, role, session_name;
};
AwsCredentials assume_role(const AwsSettings& settings, const WebIdentity& identity);

}  // namespace dtrain::net
