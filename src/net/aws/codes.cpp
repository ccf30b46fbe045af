#include <algorithm>
#include <array>

#include "problem.hpp"

namespace dtrain::net {
namespace {

struct CodeMeaning {
  AwsProblem problem;
  std::string_view code;
};

constexpr CodeMeaning kCodes[] = {
    {AwsProblem::throttled, "Throttling"},
    {AwsProblem::throttled, "ThrottlingException"},
    {AwsProblem::throttled, "ThrottledException"},
    {AwsProblem::throttled, "RequestThrottled"},
    {AwsProblem::throttled, "RequestThrottledException"},
    {AwsProblem::throttled, "TooManyRequestsException"},
    {AwsProblem::throttled, "RequestLimitExceeded"},
    {AwsProblem::throttled, "BandwidthLimitExceeded"},
    {AwsProblem::throttled, "LimitExceededException"},
    {AwsProblem::throttled, "EC2ThrottledException"},
    {AwsProblem::throttled, "SlowDown"},
    {AwsProblem::transient, "RequestTimeout"},
    {AwsProblem::transient, "RequestTimeoutException"},
    {AwsProblem::transient, "PriorRequestNotComplete"},
    {AwsProblem::transient, "InternalError"},
    {AwsProblem::transient, "InternalFailure"},
    {AwsProblem::transient, "InternalServerError"},
    {AwsProblem::transient, "ServiceUnavailable"},
    {AwsProblem::transient, "Unavailable"},
    {AwsProblem::transient, "OperationAborted"},
    {AwsProblem::transient, "ConcurrentModification"},
    {AwsProblem::transient, "EntityTemporarilyUnmodifiable"},
    {AwsProblem::transient, "BadDigest"},
    {AwsProblem::transient, "XAmzContentSHA256Mismatch"},
    {AwsProblem::transient, "XAmzContentChecksumMismatch"},
    {AwsProblem::expired_credentials, "ExpiredToken"},
    {AwsProblem::expired_credentials, "ExpiredTokenException"},
    {AwsProblem::expired_credentials, "RequestExpired"},
    {AwsProblem::expired_credentials, "TokenRefreshRequired"},
    {AwsProblem::clock_skew, "RequestTimeTooSkewed"},
    {AwsProblem::clock_skew, "RequestInTheFuture"},
    {AwsProblem::wrong_region, "PermanentRedirect"},
    {AwsProblem::wrong_region, "TemporaryRedirect"},
    {AwsProblem::wrong_region, "AuthorizationHeaderMalformed"},
    {AwsProblem::wrong_region, "IllegalLocationConstraintException"},
    {AwsProblem::denied, "AccessDenied"},
    {AwsProblem::denied, "AccessDeniedException"},
    {AwsProblem::denied, "UnauthorizedOperation"},
    {AwsProblem::denied, "UnauthorizedException"},
    {AwsProblem::denied, "OptInRequired"},
    {AwsProblem::denied, "AuthFailure.ServiceLinkedRoleCreationNotPermitted"},
    {AwsProblem::denied, "PendingVerification"},
    {AwsProblem::denied, "Blocked"},
    {AwsProblem::credentials, "InvalidAccessKeyId"},
    {AwsProblem::credentials, "InvalidClientTokenId"},
    {AwsProblem::credentials, "UnrecognizedClientException"},
    {AwsProblem::credentials, "MissingAuthenticationToken"},
    {AwsProblem::credentials, "SignatureDoesNotMatch"},
    {AwsProblem::credentials, "InvalidSignatureException"},
    {AwsProblem::credentials, "AuthFailure"},
    {AwsProblem::not_found, "NoSuchKey"},
    {AwsProblem::not_found, "NoSuchBucket"},
    {AwsProblem::not_found, "NoSuchUpload"},
    {AwsProblem::not_found, "NoSuchEntity"},
    {AwsProblem::not_found, "FileSystemNotFound"},
    {AwsProblem::not_found, "MountTargetNotFound"},
    {AwsProblem::not_found, "ParameterNotFound"},
    {AwsProblem::not_found, "ResourceNotFoundException"},
    {AwsProblem::not_found, "NoSuchResourceException"},
    {AwsProblem::not_found, "NotFoundException"},
    {AwsProblem::precondition, "PreconditionFailed"},
    {AwsProblem::capacity, "InsufficientInstanceCapacity"},
    {AwsProblem::capacity, "InsufficientHostCapacity"},
    {AwsProblem::capacity, "InsufficientReservedInstanceCapacity"},
    {AwsProblem::capacity, "ReservationCapacityExceeded"},
    {AwsProblem::capacity, "InsufficientCapacity"},
    {AwsProblem::capacity, "InsufficientCapacityOnHost"},
    {AwsProblem::capacity, "InsufficientAddressCapacity"},
    {AwsProblem::capacity, "InsufficientFreeAddressesInSubnet"},
    {AwsProblem::capacity, "UnfulfillableCapacity"},
    {AwsProblem::capacity, "SpotMaxPriceTooLow"},
    {AwsProblem::capacity, "Unsupported"},
    {AwsProblem::quota, "VcpuLimitExceeded"},
    {AwsProblem::quota, "InstanceLimitExceeded"},
    {AwsProblem::quota, "MaxSpotInstanceCountExceeded"},
    {AwsProblem::quota, "SpotFleetRequestConfigurationLimitExceeded"},
    {AwsProblem::quota, "VpcLimitExceeded"},
    {AwsProblem::quota, "SecurityGroupLimitExceeded"},
    {AwsProblem::quota, "RulesPerSecurityGroupLimitExceeded"},
    {AwsProblem::quota, "ResourceLimitExceeded"},
    {AwsProblem::quota, "FileSystemLimitExceeded"},
    {AwsProblem::quota, "NetworkInterfaceLimitExceeded"},
    {AwsProblem::quota, "ServiceLimitExceeded"},
    {AwsProblem::quota, "LimitExceeded"},
    {AwsProblem::exists, "FileSystemAlreadyExists"},
    {AwsProblem::exists, "MountTargetConflict"},
    {AwsProblem::exists, "EntityAlreadyExists"},
    {AwsProblem::exists, "InvalidLaunchTemplateName.AlreadyExistsException"},
    {AwsProblem::in_use, "DependencyViolation"},
    {AwsProblem::in_use, "DeleteConflict"},
    {AwsProblem::in_use, "FileSystemInUse"},
    {AwsProblem::in_use, "IncorrectFileSystemLifeCycleState"},
    {AwsProblem::in_use, "IncorrectMountTargetState"},
    {AwsProblem::guarded, "OperationNotPermitted"},
};

// Families of codes: "InvalidInstanceID.NotFound", "InvalidGroup.Duplicate".
constexpr CodeMeaning kEndings[] = {
    {AwsProblem::not_found, ".NotFound"},          {AwsProblem::not_found, ".NotFoundException"},
    {AwsProblem::not_found, ".Unknown"},           {AwsProblem::exists, ".Duplicate"},
    {AwsProblem::exists, ".AlreadyExists"},        {AwsProblem::in_use, ".InUse"},
    {AwsProblem::bad_request, ".Malformed"},       {AwsProblem::bad_request, "ParameterValue"},
    {AwsProblem::bad_request, "MissingParameter"},
};

AwsProblem problem_of_status(long status) {
  if (status == 429 || status == 503) return AwsProblem::throttled;
  if (status == 0 || status == 408 || status >= 500) return AwsProblem::transient;
  if (status == 301 || status == 307) return AwsProblem::wrong_region;
  if (status == 401 || status == 403) return AwsProblem::denied;
  if (status == 404) return AwsProblem::not_found;
  if (status == 412) return AwsProblem::precondition;
  return AwsProblem::other;
}

}  // namespace

AwsProblem problem_of(long status, std::string_view code) {
  const auto known =
      std::find_if(std::begin(kCodes), std::end(kCodes), [&](const auto& one) { return one.code == code; });
  if (known != std::end(kCodes)) return known->problem;
  const auto family =
      std::find_if(std::begin(kEndings), std::end(kEndings), [&](const auto& one) { return code.ends_with(one.code); });
  if (family != std::end(kEndings)) return family->problem;
  if (status / 100 == 4 &&
      (code.starts_with("Invalid") || code == "ValidationError" || code == "ValidationException")) {
    return AwsProblem::bad_request;
  }
  return problem_of_status(status);
}

std::string_view cause_class(AwsProblem problem) {
  switch (problem) {
    case AwsProblem::throttled:
      return "throttle";
    case AwsProblem::transient:
      return "network";
    case AwsProblem::expired_credentials:
    case AwsProblem::credentials:
      return "credential";
    case AwsProblem::denied:
      return "permission";
    case AwsProblem::capacity:
      return "capacity";
    case AwsProblem::quota:
      return "quota";
    case AwsProblem::other:
      return "bug";
    case AwsProblem::untrusted:
    case AwsProblem::clock_skew:
    case AwsProblem::wrong_region:
    case AwsProblem::not_found:
    case AwsProblem::precondition:
    case AwsProblem::exists:
    case AwsProblem::in_use:
    case AwsProblem::guarded:
    case AwsProblem::bad_request:
      return "config";
  }
  return "bug";
}

}  // namespace dtrain::net
