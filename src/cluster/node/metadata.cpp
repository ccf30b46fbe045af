#include "metadata.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/net/aws.hpp>
#include <dtrain/net/http_exchange.hpp>

namespace dtrain::cluster {
namespace {

constexpr std::chrono::seconds kDeadline{5};

}  // namespace

Metadata::Metadata()
    : base_(net::process_environment()("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254")) {
  const net::HttpAnswer answer = net::exchange_http({.url = base_ + "/latest/api/token",
                                                     .method = "PUT",
                                                     .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 300"},
                                                     .deadline = kDeadline});
  if (answer.status != 200) throw RemoteError(fmt::format("{}: no token: status {}", base_, answer.status));
  token_ = answer.body;
}

std::optional<std::string> Metadata::find(const std::string& path) const {
  const net::HttpAnswer answer = net::exchange_http(
      {.url = base_ + "/latest/" + path, .headers = {"X-aws-ec2-metadata-token: " + token_}, .deadline = kDeadline});
  return answer.status == 200 ? std::optional(answer.body) : std::nullopt;
}

std::string Metadata::get(const std::string& path) const {
  if (auto value = find(path)) return *value;
  throw RemoteError(fmt::format("{}: has no {}", base_, path));
}

}  // namespace dtrain::cluster
