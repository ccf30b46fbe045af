// What the machine itself offers: the container's credentials endpoint, and EC2's metadata service (IMDSv2).
#pragma once

#include <optional>
#include <string>

#include <dtrain/net/aws.hpp>

namespace dtrain::net {

// A source that has none says why.
struct CredentialsFound {
  std::optional<AwsCredentials> credentials{};
  std::string why_not{};
};

// Throws NoCredentials where an endpoint is configured and gives none: the machine's own role would be another
// identity.
CredentialsFound container_credentials(const AwsSettings& settings);
CredentialsFound instance_credentials(const AwsSettings& settings);
// nullopt: not on an instance, or its metadata is switched off.
std::optional<std::string> instance_region(const AwsSettings& settings);

// "2026-01-31T12:00:00Z", or with another offset from UTC; nullopt for anything else.
std::optional<WallTime> time_of(const std::string& text);
std::string time_text(WallTime time);

}  // namespace dtrain::net
