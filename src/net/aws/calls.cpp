#include <fmt/format.h>

#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/aws_calls.hpp>

#include "home.hpp"
#include "problem.hpp"
#include "sigv4.hpp"

namespace dtrain::net {
namespace {

constexpr const char* kForm = "application/x-www-form-urlencoded; charset=utf-8";
constexpr const char* kJson = "application/x-amz-json-1.1";
// Far more than the pages of any account; a service that repeats its token must not hold us for ever.
constexpr int kMostPages = 10'000;

using Clock = std::chrono::steady_clock;

}  // namespace

struct AwsCalls::State {
  State(AwsSettings the_settings, AwsLimits the_limits)
      : settings(std::move(the_settings)),
        limits(the_limits),
        region(aws_region(settings)),
        identity(std::make_shared<AwsIdentity>(settings)) {}

  struct Service {
    std::unique_ptr<AwsClient> client;
    std::string endpoint;
  };
  // References stay valid.
  Service& service(const AwsService& wanted);
  AwsAnswer call(const AwsService& wanted, const std::string& action, AwsRequest request);
  void tell(const AwsService& service, const std::string& action, Clock::time_point begin, std::string problem);

  AwsSettings settings;
  AwsLimits limits;
  std::string region;
  std::shared_ptr<AwsIdentity> identity;
  std::function<void(const CallRecord&)> watcher;
  Mutex mutex;  // also serialises the calls of watcher
  std::map<std::string_view, Service> services DTRAIN_GUARDED_BY(mutex);
};

AwsCalls::State::Service& AwsCalls::State::service(const AwsService& wanted) {
  const MutexLock lock(mutex);
  Service& one = services[wanted.name];
  if (!one.client) {
    one.client = std::make_unique<AwsClient>(wanted, settings, limits, identity);
    one.endpoint = aws_endpoint(wanted, region, settings).url;
  }
  return one;
}

void AwsCalls::State::tell(const AwsService& service, const std::string& action, Clock::time_point begin,
                           std::string problem) {
  if (!watcher) return;
  const MutexLock lock(mutex);
  watcher({std::string(service.name), action, Clock::now() - begin, std::move(problem)});
}

AwsAnswer AwsCalls::State::call(const AwsService& wanted, const std::string& action, AwsRequest request) {
  Service& one = service(wanted);
  request.endpoint = one.endpoint;
  request.region = signing_region(wanted, region);
  request.purpose = fmt::format("{} {}", wanted.name, action);
  const auto begin = Clock::now();
  try {
    AwsAnswer answer = one.client->call(request);
    tell(wanted, action, begin, {});
    return answer;
  } catch (const AwsError& problem) {
    tell(wanted, action, begin, problem.facts().code.empty() ? "no answer" : problem.facts().code);
    throw;
  }
}

AwsProblem problem_of_code(std::string_view code) { return problem_of(400, code); }

AwsError refusal(const std::string& what, const std::string& code, const std::string& message) {
  AwsError::Facts facts;
  facts.problem = problem_of_code(code);
  facts.status = 200;
  facts.code = code;
  facts.message = message;
  return error_of(what, std::move(facts));
}

std::vector<std::pair<std::string, std::string>> details_of(const AwsError& error) {
  const AwsError::Facts& facts = error.facts();
  return {{"cause", std::string(cause_class(facts.problem))},
          {"code", facts.code},
          {"request_id", facts.request_id},
          {"status", std::to_string(facts.status)},
          {"tries", std::to_string(facts.tries)}};
}

AwsCalls::AwsCalls(AwsSettings settings, AwsLimits limits)
    : state_(std::make_unique<State>(std::move(settings), limits)) {}
AwsCalls::~AwsCalls() = default;

const std::string& AwsCalls::region() const { return state_->region; }
std::string AwsCalls::credentials_source() { return state_->identity->credentials().source; }
bool AwsCalls::talks_to_another() const { return aws_endpoint(kEc2.service, state_->region, state_->settings).custom; }
void AwsCalls::watch(std::function<void(const CallRecord&)> watcher) { state_->watcher = std::move(watcher); }

Element AwsCalls::query(const QueryApi& api, const std::string& action, std::vector<HttpField> fields, LostReply lost) {
  fields.emplace_back("Action", action);
  fields.emplace_back("Version", api.version);
  const std::string body = encode_query(fields);
  const AwsAnswer answer = state_->call(api.service, action,
                                        {.method = "POST",
                                         .headers = {{"Content-Type", kForm}},
                                         .body = bytes_of(body),
                                         .call_again = lost == LostReply::call_again});
  return parse_xml(answer.body, fmt::format("the answer to {} {}", api.service.name, action));
}

std::vector<Element> AwsCalls::query_all(const QueryApi& api, const std::string& action,
                                         const std::vector<HttpField>& fields, std::string_view name) {
  std::vector<Element> all;
  std::string token;
  for (int page = 0; page < kMostPages; ++page) {
    std::vector<HttpField> asked = fields;
    if (!token.empty()) asked.emplace_back("NextToken", token);
    const Element answer = query(api, action, std::move(asked));
    for (Element& one : answer.list(name)) all.push_back(std::move(one));
    token = answer.value("nextToken");
    if (token.empty()) return all;
  }
  throw DataError(fmt::format("{} {}: its pages have no end", api.service.name, action));
}

Json AwsCalls::json(const JsonApi& api, const std::string& action, const Json& document, LostReply lost) {
  const std::string body = document.dump();
  const AwsAnswer answer =
      state_->call(api.service, action,
                   {.method = "POST",
                    .headers = {{"Content-Type", kJson}, {"X-Amz-Target", fmt::format("{}.{}", api.target, action)}},
                    .body = bytes_of(body),
                    .call_again = lost == LostReply::call_again});
  if (trim(answer.body).empty()) return {};
  return Json::parse(answer.body, fmt::format("the answer to {} {}", api.service.name, action));
}

Json AwsCalls::rest(const AwsService& service, const std::string& method, const std::string& path,
                    const std::vector<HttpField>& query, const Json& document) {
  const std::string body = document.is_null() ? std::string() : document.dump();
  AwsRequest request{.method = method, .path = path, .query = query, .body = bytes_of(body)};
  if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  const std::string action = fmt::format("{} {}", method, path);
  const AwsAnswer answer = state_->call(service, action, std::move(request));
  if (trim(answer.body).empty()) return {};
  return Json::parse(answer.body, fmt::format("the answer to {} {}", service.name, action));
}

}  // namespace dtrain::net
