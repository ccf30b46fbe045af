#include "problem.hpp"

#include <fmt/format.h>
#include <pugixml.hpp>

#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

#include "http/exchange.hpp"

namespace dtrain::net {
namespace {

// <Error> of S3, <ErrorResponse><Error> of the query services, <Response><Errors><Error> of EC2.
void read_xml(const std::string& body, AwsError::Facts& facts) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return;
  const pugi::xml_node root = document.document_element();
  pugi::xml_node error = root;
  if (const pugi::xml_node inner = root.child("Error")) error = inner;
  if (const pugi::xml_node inner = root.child("Errors").child("Error")) error = inner;
  facts.code = error.child_value("Code");
  facts.message = error.child_value("Message");
  facts.region = error.child_value("Region");
  for (const char* name : {"RequestId", "RequestID", "requestId"}) {
    if (facts.request_id.empty()) facts.request_id = root.child_value(name);
  }
}

void read_json(const AwsAnswer& answer, AwsError::Facts& facts) try {
  const Json document = Json::parse(answer.body, "the answer");
  for (const char* key : {"message", "Message"}) {
    facts.message = document.find_text(key, facts.message);
  }
  std::string code = document.find_text("__type", answer.header("x-amzn-errortype"));
  if (code.empty()) code = document.find_text("ErrorCode");
  code = code.substr(0, code.find(':'));
  facts.code = code.substr(code.find('#') == code.npos ? 0 : code.find('#') + 1);
} catch (const DataError&) {
  // no JSON after all: the status says enough
}

// "https://host:port" of a whole URL; empty for anything else.
std::string origin_of(const std::string& url) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) return {};
  return url.substr(0, url.find('/', url.find("://") + 3));
}

// A region that does not exist has no host: curl says "Could not resolve host: ec2.us-esat-1.amazonaws.com".
bool is_unknown_host(std::string_view failure) { return failure.find("resolve host") != failure.npos; }

// The first spot instance of an account makes EC2 create a role, for which the caller needs a right of its own.
constexpr std::string_view kNoSpotRole = "AuthFailure.ServiceLinkedRoleCreationNotPermitted";

std::string hint_of(const AwsError::Facts& facts) {
  switch (facts.problem) {
    case AwsProblem::throttled:
      return "the service asks for fewer requests: try again later";
    case AwsProblem::transient:
      if (is_unknown_host(facts.message))
        return "check the names of the region and of the endpoint, and the network, then run the same command again";
      return "check the network and the endpoint, then run the same command again";
    case AwsProblem::untrusted:
      return trust_hint(facts.by_profile);
    case AwsProblem::expired_credentials:
      return "get new credentials, for example with aws sso login";
    case AwsProblem::clock_skew:
      return "set this machine's clock";
    case AwsProblem::wrong_region:
      return "set AWS_REGION to the bucket's region";
    case AwsProblem::denied:
      if (facts.code == kNoSpotRole) {
        return "an administrator of the account can make the role for spot instances once: "
               "`aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`; or use credentials with "
               "the rights that `dtrain cluster iam-policy` prints, or machines on demand";
      }
      return "check which credentials are used (AWS_PROFILE, AWS_ACCESS_KEY_ID) and their rights";
    case AwsProblem::not_found:
      return "check the name";
    case AwsProblem::precondition:
      return "the object was replaced: run the command again";
    case AwsProblem::capacity:
      return "there are no such machines now: try another zone (setting 'subnet'), another setting 'instance-type' or "
             "market (setting 'spot')";
    case AwsProblem::quota:
      return "ask AWS for a higher limit (console: Service Quotas), or use fewer or smaller machines";
    case AwsProblem::credentials:
      return "check the keys: AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ~/.aws/credentials";
    case AwsProblem::exists:
      return "that name is taken by another user: choose another name";
    case AwsProblem::in_use:
      return "wait until what uses it is gone, then run the same command again";
    case AwsProblem::guarded:
      return "switch termination protection off, then run the same command again: "
             "aws ec2 modify-instance-attribute --no-disable-api-termination --instance-id ID";
    case AwsProblem::bad_request:
      return "correct the option that the message names";
    case AwsProblem::other:
      return "";
  }
  return "";
}

}  // namespace

AwsError::Facts facts_of(const AwsAnswer& answer) {
  AwsError::Facts facts;
  facts.status = answer.status;
  const std::string_view body = trim(answer.body);
  if (body.starts_with('<')) read_xml(answer.body, facts);
  if (body.starts_with('{')) read_json(answer, facts);
  if (facts.request_id.empty()) facts.request_id = answer.header("x-amz-request-id");
  if (facts.request_id.empty()) facts.request_id = answer.header("x-amzn-requestid");
  if (const std::string region = answer.header("x-amz-bucket-region"); !region.empty()) facts.region = region;
  facts.endpoint = origin_of(answer.header("location"));
  facts.problem = problem_of(answer.status, facts.code);
  // A HEAD has no body: a plain 400 that names a region can only mean another one.
  if (facts.problem == AwsProblem::other && facts.code.empty() && !facts.region.empty()) {
    facts.problem = AwsProblem::wrong_region;
  }
  return facts;
}

AwsError::Facts facts_of_failure(std::string message, AwsProblem problem) {
  AwsError::Facts facts;
  facts.problem = problem;
  facts.message = std::move(message);
  return facts;
}

AwsError error_of(const std::string& what, AwsError::Facts facts) {
  std::vector<std::string> words{what};
  for (const std::string& word : {facts.code, facts.message}) {
    if (!word.empty()) words.push_back(word);
  }
  std::string text = join(words, ": ");
  const std::string_view cause = cause_class(facts.problem);
  if (facts.status != 0 && facts.request_id.empty()) text += fmt::format(" ({}, status {})", cause, facts.status);
  if (!facts.request_id.empty()) {
    text += fmt::format(" ({}, status {}, request {})", cause, facts.status, facts.request_id);
  }
  if (facts.tries > 1) text += fmt::format(" ({} tries)", facts.tries);
  std::string hint = hint_of(facts);
  return AwsError(text, std::move(hint), std::move(facts));
}

}  // namespace dtrain::net
