#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "key_value_server.hpp"

namespace dtrain::external {
namespace {

TEST(KeyValues, AreThereOnceSomebodyStoredThem) {
  KeyValues values;
  EXPECT_EQ(values.answer({"GET", "/global/0", ""}).status, 404);
  EXPECT_EQ(values.answer({"PUT", "/global/0", std::string("a\0b", 3)}).status, 200);
  EXPECT_EQ(values.answer({"GET", "/global/0", ""}).body, std::string("a\0b", 3));
  EXPECT_EQ(values.answer({"GET", "/local/0", ""}).status, 404);
  EXPECT_EQ(values.answer({"DELETE", "/global/0", ""}).status, 200);
  EXPECT_EQ(values.answer({"GET", "/global/0", ""}).status, 404);
  EXPECT_EQ(values.answer({"POST", "/global/0", ""}).status, 405);
}

TEST(KeyValues, TakeNoMoreThanAJobNeeds) {
  KeyValues values;
  const std::string value(1 << 20, 'x');
  int status = 200, stored = 0;
  while (status == 200 && stored < 1000)
    status = values.answer({"PUT", "/k/" + std::to_string(stored++), value}).status;
  EXPECT_EQ(status, 413);
  EXPECT_GT(stored, 32);
}

TEST(KeyValueRequest, IsTakenOnceItIsWhole) {
  const std::string text = "PUT /a/b HTTP/1.1\r\nHost: x\r\ncontent-length: 3\r\n\r\nabcGET /a/b HTTP/1.0\r\n\r\n";
  HttpRequest request;
  for (std::size_t size = 0; size < text.find("abc") + 3; ++size) {
    EXPECT_EQ(take_request(text.substr(0, size), request), 0u) << size;
  }
  const std::size_t first = take_request(text, request);
  EXPECT_EQ(request.method + request.path + request.body, "PUT/a/babc");
  EXPECT_EQ(take_request(text.substr(first), request), text.size() - first);
  EXPECT_EQ(request.method, "GET");
}

TEST(KeyValueRequest, WhatIsNoneIsRefused) {
  HttpRequest request;
  EXPECT_THROW(take_request("hello\r\n\r\n", request), DataError);
  EXPECT_THROW(take_request("PUT /a HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", request), DataError);
  EXPECT_THROW(take_request("PUT /a HTTP/1.1\r\nContent-Length: -1\r\n\r\n", request), DataError);
  EXPECT_THROW(take_request(std::string(1 << 20, 'x'), request), DataError);
}

}  // namespace
}  // namespace dtrain::external
