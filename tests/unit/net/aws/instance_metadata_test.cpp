#include <dtrain/net/instance_metadata.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/net/http_server.hpp>
#include <dtrain/net/loop_thread.hpp>

namespace dtrain::net {
namespace {

// A metadata service that counts tokens, and refuses one request as if its token had expired.
class InstanceMetadataTest : public testing::Test {
 protected:
  HttpResponse answer(const HttpRequest& request) {
    if (request.path == "/latest/api/token") {
      if (request.method != "PUT") return {.status = 405};
      ++tokens_;
      return {.body = "token"};
    }
    if (expired_.exchange(false)) return {.status = 401};
    if (request.path == "/latest/meta-data/placement/region") return {.body = "eu-central-1"};
    if (const auto found = notices_.find(request.path); found != notices_.end()) return {.body = found->second};
    return {.status = 404};
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }

  std::atomic<int> tokens_ = 0;
  std::atomic<bool> expired_ = false;
  std::map<std::string, std::string> notices_{};  // by path; set between two requests
  LoopThread loop_;
  HttpServer server_{loop_.loop(), "127.0.0.1", 0, [this](const HttpRequest& request) { return answer(request); }};
};

TEST_F(InstanceMetadataTest, OneTokenServesAllValues) {
  InstanceMetadata metadata({.url = url() + "/"});
  EXPECT_EQ(metadata.find("meta-data/placement/region"), "eu-central-1");
  EXPECT_EQ(metadata.get("meta-data/placement/region"), "eu-central-1");
  EXPECT_EQ(metadata.find("meta-data/spot/instance-action"), std::nullopt);
  EXPECT_THROW(metadata.get("meta-data/spot/instance-action"), RemoteError);
  EXPECT_EQ(tokens_, 1);
}

TEST_F(InstanceMetadataTest, AnExpiredTokenIsRenewedByTheNextCall) {
  InstanceMetadata metadata({.url = url()});
  EXPECT_EQ(metadata.find("meta-data/placement/region"), "eu-central-1");
  expired_ = true;
  EXPECT_EQ(metadata.find("meta-data/placement/region"), std::nullopt);
  EXPECT_EQ(metadata.find("meta-data/placement/region"), "eu-central-1");
  EXPECT_EQ(tokens_, 2);
}

TEST_F(InstanceMetadataTest, AnEndIsAnnouncedAndOneThatIsFinalComesFirst) {
  InstanceMetadata metadata({.url = url()});
  EXPECT_EQ(end_notice(metadata), std::nullopt);
  notices_["/latest/meta-data/events/recommendations/rebalance"] = R"({"noticeTime": "2026-01-31T08:20:00Z"})";
  EXPECT_EQ(end_notice(metadata), (EndNotice{false, "rebalance recommended at 2026-01-31T08:20:00Z"}));
  notices_["/latest/meta-data/spot/instance-action"] = R"({"action": "terminate"})";
  EXPECT_EQ(end_notice(metadata), (EndNotice{true, "spot notice: terminate at an unknown time"}));
  notices_["/latest/meta-data/spot/instance-action"] = "soon";
  EXPECT_THROW(end_notice(metadata), DataError);
}

TEST_F(InstanceMetadataTest, AMissingServiceIsAnError) {
  std::string gone;
  {
    const HttpServer other(loop_.loop(), "127.0.0.1", 0, [](const HttpRequest&) { return HttpResponse(); });
    gone = "http://127.0.0.1:" + std::to_string(other.port());
  }
  InstanceMetadata metadata({.url = gone, .deadline = std::chrono::milliseconds(300)});
  EXPECT_THROW(metadata.find("meta-data/placement/region"), RemoteError);
}

}  // namespace
}  // namespace dtrain::net
