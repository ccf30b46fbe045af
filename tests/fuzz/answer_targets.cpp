#include "fuzz.hpp"
#include "net/aws/problem.hpp"
#include "net/s3/list.hpp"

namespace dtrain::fuzz {

std::vector<Target> answer_targets() {
  const std::string list =
      "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>x</NextContinuationToken><Contents><Key>a%20b%2Fc+d.jpg</Key><Size>12</Size><ETag>&quot;e"
      "&quot;</ETag></Contents></ListBucketResult>";
  const std::string uploads =
      "<ListMultipartUploadsResult><Upload><Key>k</Key><UploadId>u</UploadId><Initiated>2026-01-01T00:00:00Z"
      "</Initiated></Upload></ListMultipartUploadsResult>";
  const std::string parts =
      "<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>2</"
      "NextPartNumberMarker><Part><PartNumber>1"
      "</PartNumber><Size>5242880</Size><ETag>e</ETag><ChecksumCRC32C>AAAAAA==</ChecksumCRC32C></Part></"
      "ListPartsResult>";
  const std::string begun = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
  const std::string refusal =
      "<Error><Code>NoSuchKey</Code><Message>none</Message><RequestId>R</RequestId><Region>eu-west-1</Region></Error>";
  const std::string queried =
      "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>m</Message></Error><RequestId>R"
      "</RequestId></ErrorResponse>";
  return {
      {"xml-list", {list}, [](const std::string& input) { net::parse_object_page(input); }},
      {"xml-uploads", {uploads}, [](const std::string& input) { net::parse_uploads(input); }},
      {"xml-parts", {parts}, [](const std::string& input) { net::parse_parts(input); }},
      {"xml-begun", {begun}, [](const std::string& input) { net::parse_upload_id(input); }},
      {"refusal",
       {refusal, queried, R"({"__type": "ThrottlingException", "message": "slow down"})"},
       [](const std::string& input) { net::facts_of({.status = 400, .body = input}); }},
  };
}

}  // namespace dtrain::fuzz
