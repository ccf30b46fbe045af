#include <fmt/format.h>

#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/launcher/program_files.hpp>
#include <dtrain/net/aws.hpp>

#include "doctor_facts.hpp"

namespace dtrain::doctor {
namespace {

using namespace std::chrono_literals;

// A person waits for it.
constexpr net::AwsLimits kLimits{.attempts = 2, .connect_timeout = 3s, .stall_timeout = 5s};

// What stands between <NAME> and </NAME>.
std::string between(const std::string& xml, const std::string& name) {
  const std::string open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
  const std::size_t begin = xml.find(open), end = xml.find(close);
  if (begin == std::string::npos || end == std::string::npos || end < begin + open.size()) return {};
  return xml.substr(begin + open.size(), end - begin - open.size());
}

void ask_region(AwsFacts& facts) {
  try {
    facts.region = net::aws_region({});
  } catch (const Error&) {  // it stays empty
  }
}

void ask_identity(AwsFacts& facts) {
  net::AwsRequest request{.method = "POST"};
  request.region = facts.region.empty() ? "us-east-1" : facts.region;
  request.endpoint = net::aws_endpoint(net::kSts, request.region, {}).url;
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  const std::string body = "Action=GetCallerIdentity&Version=2011-06-15";
  request.body = bytes_of(body);
  try {
    net::AwsClient client(net::kSts, {}, kLimits);
    const std::string answer = client.call(request).body;
    facts.account = between(answer, "Account");
    facts.name = between(answer, "Arn");
  } catch (const Error& error) {
    facts.identity_error = error.what();
    facts.hint = error.hint();
  }
}

}  // namespace

AwsFacts read_aws() {
  AwsFacts facts{.asked = true, .is_bundle = !launcher::bundle_of(own_command()).empty()};
  try {
    net::AwsIdentity identity({});
    facts.source = identity.credentials().source;
  } catch (const Error& error) {
    facts.hint = error.hint();
    return facts;
  }
  ask_region(facts);
  ask_identity(facts);
  return facts;
}

}  // namespace dtrain::doctor
