#include <gtest/gtest.h>

#include <dtrain/base/hash.hpp>

#include "aws/sigv4.hpp"

namespace dtrain::net {
namespace {

// The account that AWS's documents use everywhere.
SigningKey example_key(std::string service, std::string time = "20130524T000000Z") {
  return {.access_key = "AKIAIOSFODNN7EXAMPLE",
          .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
          .time = std::move(time),
          .region = "us-east-1",
          .service = std::move(service)};
}

// An S3 request of "Signature Calculations for the Authorization Header" (Amazon S3 API Reference).
RequestToSign s3_example(std::string path, std::string query, std::string body = {}) {
  const std::string hash = sha256_hex(bytes_of(body));
  return {.method = "GET",
          .path = std::move(path),
          .query = std::move(query),
          .headers = {{"Host", "examplebucket.s3.amazonaws.com"},
                      {"x-amz-date", "20130524T000000Z"},
                      {"x-amz-content-sha256", hash}},
          .payload_hash = hash};
}

std::string signature_of(const RequestToSign& request, const SigningKey& key) {
  const std::string header = authorization(request, key);
  return header.substr(header.find("Signature=") + 10);
}

TEST(SigV4, SignsTheDocumentedGetOfARange) {
  RequestToSign request = s3_example("/test.txt", "");
  request.headers.emplace_back("Range", "bytes=0-9");
  EXPECT_EQ(signature_of(request, example_key("s3")),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4, SignsTheDocumentedPutOfAKeyWithADollar) {
  RequestToSign request = s3_example(encode_path("/test$file.text"), "", "Welcome to Amazon S3.");
  request.method = "PUT";
  request.headers.emplace_back("Date", "Fri, 24 May 2013 00:00:00 GMT");
  request.headers.emplace_back("x-amz-storage-class", "REDUCED_REDUNDANCY");
  EXPECT_EQ(signature_of(request, example_key("s3")),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(SigV4, SignsTheDocumentedQueryWithoutAValue) {
  EXPECT_EQ(signature_of(s3_example("/", encode_query({{"lifecycle", ""}})), example_key("s3")),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(SigV4, SignsTheDocumentedList) {
  EXPECT_EQ(signature_of(s3_example("/", encode_query({{"prefix", "J"}, {"max-keys", "2"}})), example_key("s3")),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4, BuildsTheCanonicalRequestLineByLine) {
  const RequestToSign request{.method = "GET",
                              .path = "/",
                              .query = "a=1",
                              .headers = {{"X-Amz-Meta-B", "  two   words "}, {"Host", "h"}, {"x-amz-meta-b", "more"}},
                              .payload_hash = "hash"};
  EXPECT_EQ(canonical_request(request), "GET\n/\na=1\nhost:h\nx-amz-meta-b:two words,more\n\nhost;x-amz-meta-b\nhash");
}

TEST(SigV4, EncodesAllButTheUnreservedCharacters) {
  EXPECT_EQ(encode_component("aZ09-_.~ =+:*()'@/\xc3\xa9"), "aZ09-_.~%20%3D%2B%3A%2A%28%29%27%40%2F%C3%A9");
  EXPECT_EQ(encode_path("/a b//c"), "/a%20b//c");
}

TEST(SigV4, SortsTheQueryByNameThenValueAfterEncoding) {
  EXPECT_EQ(encode_query({{"b", "2"}, {"a", "y"}, {"a", "x"}, {"uploads", ""}}), "a=x&a=y&b=2&uploads=");
}

TEST(SigV4, LeavesThePathOfS3AsItIsAndNormalisesAllOthers) {
  EXPECT_EQ(canonical_path("/a//b/../c%20d", true), "/a//b/../c%20d");
  EXPECT_EQ(canonical_path("/a//b/.././c%20d/", false), "/a/c%2520d/");
  EXPECT_EQ(canonical_path("", false), "/");
}

TEST(SigV4, WritesTheTimeOfTheScope) {
  EXPECT_EQ(amazon_time(std::chrono::system_clock::from_time_t(1440938160)), "20150830T123600Z");
}

}  // namespace
}  // namespace dtrain::net
