// What a service's refusal says, and what it means.
#pragma once

#include <string>
#include <string_view>

#include <dtrain/net/aws.hpp>

namespace dtrain::net {

// Reads the XML of S3, EC2 and the query services and the JSON of all others; anything else is a plain status.
AwsError::Facts facts_of(const AwsAnswer& answer);
// The facts of a try that got no complete answer.
AwsError::Facts facts_of_failure(std::string message, AwsProblem problem = AwsProblem::transient);
// Decided by the code first, since capacity and throttling come with any status, then by the status.
AwsProblem problem_of(long status, std::string_view code);
// "s3://b/k: NoSuchKey: The specified key does not exist (404, request 4442587FB7D0A2F9)", with a hint what to do.
AwsError error_of(const std::string& what, AwsError::Facts facts);

}  // namespace dtrain::net
