// The sign-in that `aws sso login` leaves in ~/.aws/sso/cache, exchanged for the keys of a profile's role.
#pragma once

#include <dtrain/net/aws.hpp>

#include "profile.hpp"

namespace dtrain::net {

// Whether the profile signs in so.
bool signs_in_by_sso(const AwsProfile& profile);

// A token that ends soon is renewed, and written back as the AWS command line does. Throws NoCredentials naming
// the command that signs in where no valid token is, UsageError for what the profile lacks, and AwsError for what the
// service refuses.
AwsCredentials sso_credentials(const AwsSettings& settings, const AwsProfile& profile);

}  // namespace dtrain::net
