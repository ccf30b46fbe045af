// The chosen profile: what ~/.aws/config and ~/.aws/credentials say about it.
#pragma once

#include <optional>
#include <string>

#include <dtrain/net/aws.hpp>

#include "ini.hpp"

namespace dtrain::net {

// The variable's value; nullopt when it is unset or empty.
std::optional<std::string> variable_of(const AwsSettings& settings, const std::string& name);

struct AwsProfile {
  std::string name = "default";
  bool chosen = false;  // the user named it: it must exist
  std::string config_file, credentials_file;
  Ini config, credentials;

  // The value from the credentials file, else from the config file; empty: there is none.
  std::string value(const std::string& key) const;
  // The profile's endpoint for a service from its [services] section; empty: there is none.
  std::string service_endpoint(std::string_view variable) const;
  // The profile's value, else that of the [sso-session] section of this name; empty: there is none.
  std::string session_value(const std::string& session, const std::string& key) const;
  bool exists() const;
  const std::map<std::string, std::string>* config_section() const;  // null: there is none
};

// Throws UsageError for a file that does not parse.
AwsProfile read_profile(const AwsSettings& settings);

}  // namespace dtrain::net
