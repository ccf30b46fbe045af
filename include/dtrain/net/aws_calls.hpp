// Calls of the AWS services that answer in documents: EC2, IAM, STS, CloudFormation and Auto Scaling (query and XML),
// EFS (REST and JSON), SSM, Service Quotas, KMS, FSx and EMR (JSON). Signing, tries and errors are those of
// <dtrain/net/aws.hpp>.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/net/aws.hpp>

namespace dtrain::net {

// An element of an XML answer, without attributes.
struct Element {
  std::string name{}, text{};
  std::vector<Element> children{};

  // The first child of that name; an empty element where there is none, so that chains of them need no questions.
  const Element& at(std::string_view child) const;
  const std::string& value(std::string_view child) const { return at(child).text; }
  // The entries of the list `child`: EC2 writes <item>, the other query services <member>.
  std::vector<Element> list(std::string_view child) const { return at(child).children; }
};
// Throws DataError that names `source`.
Element parse_xml(std::string_view text, const std::string& source);

// Services whose calls are a form with Action and Version.
struct QueryApi {
  AwsService service;
  std::string_view version;
};
inline constexpr QueryApi kEc2{{.name = "ec2", .variable = "EC2"}, "2016-11-15"};
inline constexpr QueryApi kIam{{.name = "iam", .variable = "IAM", .is_global = true}, "2010-05-08"};
inline constexpr QueryApi kStsCalls{kSts, "2011-06-15"};
inline constexpr QueryApi kCloudFormation{{.name = "cloudformation", .variable = "CLOUDFORMATION"}, "2010-05-15"};
inline constexpr QueryApi kAutoScaling{{.name = "autoscaling", .variable = "AUTO_SCALING"}, "2011-01-01"};

// Services whose calls are a JSON document posted to "/".
struct JsonApi {
  AwsService service;
  std::string_view target;  // what stands before the action in X-Amz-Target
};
inline constexpr JsonApi kSsm{{.name = "ssm", .variable = "SSM"}, "AmazonSSM"};
inline constexpr JsonApi kQuotas{{.name = "servicequotas", .variable = "SERVICE_QUOTAS"}, "ServiceQuotasV20190624"};
inline constexpr JsonApi kKms{{.name = "kms", .variable = "KMS"}, "TrentService"};
inline constexpr JsonApi kFsx{{.name = "fsx", .variable = "FSX"}, "AWSSimbaAPIService_v20180301"};
inline constexpr JsonApi kEmr{{.name = "elasticmapreduce", .variable = "EMR"}, "ElasticMapReduce"};

// A service whose paths are its calls; its paths begin with "/2015-02-01/".
inline constexpr AwsService kEfs{.name = "elasticfilesystem", .variable = "EFS"};

// What a code means that stands inside an answer, and that refusal as an error.
AwsProblem problem_of_code(std::string_view code);
AwsError refusal(const std::string& what, const std::string& code, const std::string& message);

// What a program may want to know of a refusal: cause, code, request_id, status and tries.
std::vector<std::pair<std::string, std::string>> details_of(const AwsError& error);

// One call as it was made, for a person who wants to see where time goes. Holds nothing secret.
struct CallRecord {
  std::string service, action;
  std::chrono::duration<double> took{};
  std::string problem;  // the service's code, or what else ended it; empty: it was answered
};

// What to do when a call may have happened although no answer came.
enum class LostReply {
  call_again,  // harmless: the call reads, or says for itself that it is the same call
  tell,        // throw: the caller looks what is there
};

// What `read` reads from an answer; a DataError then names the call.
template <typename Read>
auto read_answer(const std::string& call, const Read& read) {
  try {
    return read();
  } catch (const DataError& problem) {
    throw DataError("the answer to " + call + " is not what the service documents: " + problem.what());
  }
}

class AwsCalls;
// Ends a listing that has no end: turn() throws DataError for a token that came before, and RemoteError once the pages
// take longer in all than the limits of the calls allow.
class Pages {
 public:
  Pages(const AwsCalls& calls, std::string call);
  void turn(const std::string& token);

 private:
  std::string call_;
  std::chrono::milliseconds patience_;
  std::chrono::steady_clock::time_point begin_;
  std::set<std::string> tokens_{};
};

// The calls of one person in one region. Safe for concurrent use. All throw AwsError, Stopped after SIGINT or SIGTERM,
// UsageError for want of credentials or region, DataError for an answer that is no document.
class AwsCalls {
 public:
  explicit AwsCalls(AwsSettings settings = {}, AwsLimits limits = {});
  ~AwsCalls();

  const std::string& region() const;
  std::string credentials_source();
  // No try of later calls begins after this. Connections are made anew, so it is not for each call. No call may be
  // under way.
  void limit_until(std::chrono::steady_clock::time_point until);
  // Other calls of the same person in the same region, for what is still to be done after SIGINT or SIGTERM: signals do
  // not stop them, and no try begins after `time`.
  AwsCalls after_stop(std::chrono::seconds time) const;
  // The longest time for one listing, or for one wait of the caller.
  std::chrono::milliseconds patience() const;
  // The user chose another endpoint for EC2, so it may be another service than AWS.
  bool talks_to_another() const;
  std::string ca_bundle() const;  // aws_ca_bundle() of its settings
  // The service's clock, as its answers show it. It is the machine's own clock where the two differ by less than an
  // answer and its way leave open, and before the first answer.
  WallTime now() const;
  std::chrono::seconds clock_skew() const;  // the service's clock less the machine's own; 0: they agree
  // Notes that this id or name was just created. For a minute, an answer that it does not exist means "not yet": the
  // call is repeated with growing pauses.
  void created(const std::string& resource);
  // Called after each call, from the thread that made it, one at a time. Set before the first call.
  void watch(std::function<void(const CallRecord&)> watcher);

  Element query(const QueryApi& api, const std::string& action, std::vector<HttpField> fields,
                LostReply lost = LostReply::call_again);
  // The entries of list `name` of all pages. Throws RemoteError if they take longer than the limits allow in all.
  std::vector<Element> query_all(const QueryApi& api, const std::string& action, const std::vector<HttpField>& fields,
                                 std::string_view name);
  Json json(const JsonApi& api, const std::string& action, const Json& document,
            LostReply lost = LostReply::call_again);
  // `document` null: no body. An empty answer is null.
  Json rest(const AwsService& service, const std::string& method, const std::string& path,
            const std::vector<HttpField>& query = {}, const Json& document = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::net
