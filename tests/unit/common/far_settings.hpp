// How tests reach the S3 server of tests/net/s3_server.py, whatever the environment of this process says.
#pragma once

#include <optional>
#include <string>

#include <dtrain/net/aws.hpp>

#include "test_server.hpp"

namespace dtrain {

inline net::AwsSettings far_settings(const net::TestServer& server) {
  net::AwsSettings settings;
  settings.endpoint_url = server.url("");
  settings.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "AWS_ACCESS_KEY_ID") return "key";
    if (name == "AWS_SECRET_ACCESS_KEY") return "secret";
    if (name == "AWS_REGION") return "us-east-1";
    return std::nullopt;
  };
  return settings;
}

}  // namespace dtrain
