#include "data_answers.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <dtrain/base/files.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/objects.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/net/objects.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>

#include "common/far_settings.hpp"
#include "common/set_variable.hpp"
#include "common/temporary_folder.hpp"
#include "reply.hpp"

namespace dtrain::board {
namespace {

// With its train.toml, as this user's training writes it.
RunPlace own_run(const Path& folder, const std::string& settings) {
  std::filesystem::create_directories(folder);
  write_file_atomic(folder / "train.toml", settings);
  return {.folder = folder.string(), .settings = settings};
}

TEST(DataOfARun, HasNoNamesOfClassesWhereItsFilesContradictEachOther) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    data::RecordWriter writer(folder / (std::string(name) + ".rec"));
    writer.add(0, 0, bytes_of("no picture"));
    writer.finish();
  }
  write_file_atomic(folder / "a.pack.json", R"({"classes": ["cat"]})");
  write_file_atomic(folder / "b.pack.json", R"({"classes": ["owl"]})");
  const std::string a = folder / "a.rec", both = a + "," + std::string(folder / "b.rec");
  const auto answer_of = [&](const std::string& files) {
    return data_of(own_run(folder / "m-run", "data-train = \"" + files + "\"\n"));
  };
  const Json one = answer_of(a), contradiction = answer_of(both);
  EXPECT_EQ(one.at("classes").as_array().at(0).at("name").as_string(), "cat");
  EXPECT_EQ(one.at("warning").as_string(), "");
  EXPECT_EQ(contradiction.at("records").as_number(), 2);
  EXPECT_EQ(contradiction.at("classes").as_array().at(0).at("name").as_string(), "");
  EXPECT_NE(contradiction.at("warning").as_string().find("b.rec: class 0 is \"owl\", but in "), std::string::npos);
}

TEST(DataOfARun, ShowsNoSecretOfAUrl) {
  const TemporaryFolder folder;
  const SetVariable cache("XDG_CACHE_HOME", folder.path().string());
  data::RecordWriter writer(folder / "a.rec");
  writer.add(0, 0, bytes_of("no picture"));
  writer.finish();
  const net::TestServer server("s3_server.py");
  net::ObjectStore store(far_settings(server));
  for (const std::string name : {"a.rec", "a.idx"})
    store.put("s3://public/plain/" + name, bytes_of(read_file(folder / name)));
  const std::string secret = server.url("public/plain/a.rec?X-Amz-Signature=hidden");
  const Json answer = data_of(own_run(folder / "m-run", "data-train = \"" + secret + "\"\n"));
  EXPECT_EQ(answer.at("records").as_number(), 1);
  EXPECT_EQ(answer.at("files").as_array().at(0).as_string(), server.url("public/plain/a.rec"));
}

// Others may write train.toml, or it is a link, or none of the settings stand there.
TEST(DataOfARun, BehindS3NamesNothingOfThisMachine) {
  for (const char* named : {"/etc/passwd", "s3://bucket/set,/etc/passwd", "http://169.254.0.1/set"}) {
    const RunPlace run{"s3://bucket/m-run", std::string("data-train = \"") + named + "\"\n"};
    EXPECT_THROW(data_of(run), Missing) << named;
  }
}

TEST(DataOfARun, IsNotOpenedWhereAnotherUserMayHaveNamedIt) {
  const TemporaryFolder folder;
  data::RecordWriter writer(folder / "a.rec");
  writer.add(0, 0, bytes_of("no picture"));
  writer.finish();
  const RunPlace run = own_run(folder / "m-run", "data-train = \"a\"\n");
  const Path settings = folder / "m-run/train.toml";
  const auto why = [&]() -> std::string {
    EXPECT_THROW(sheet_of(run), Missing);
    try {
      data_of(run);
    } catch (const Missing& refusal) {
      return refusal.what();
    }
    return "opened";
  };
  EXPECT_EQ(data_of(run).at("records").as_number(), 1);
  using std::filesystem::perms;
  std::filesystem::permissions(settings, perms::group_write, std::filesystem::perm_options::add);
  EXPECT_EQ(data_of(run).at("records").as_number(), 1) << "the group of a user has often no other member";
  std::filesystem::permissions(settings, perms::others_write, std::filesystem::perm_options::add);
  EXPECT_EQ(why(), "other users may write train.toml, so the board does not open the records that it names");
  std::filesystem::rename(settings, folder / "elsewhere.toml");
  std::filesystem::create_symlink(folder / "elsewhere.toml", settings);
  EXPECT_NE(why(), "opened") << "a link";
  std::filesystem::remove(settings);
  write_file_atomic(settings, "data-train = \"b\"\n");
  EXPECT_NE(why(), "opened") << "other settings than those that the board has read";
}

TEST(DataOfARun, OfAnotherUserIsNotOpened) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file to another user";
  const TemporaryFolder folder;
  const RunPlace run = own_run(folder / "m-run", "data-train = \"/nothing/here\"\n");
  ASSERT_EQ(::chown((folder / "m-run/train.toml").c_str(), 1, 1), 0);
  try {
    data_of(run);
    ADD_FAILURE() << "the data were looked for";
  } catch (const Missing& refusal) {
    EXPECT_EQ(std::string(refusal.what()).find("train.toml belongs to "), 0u) << refusal.what();
  }
}

// What newest_network() reads of a checkpoint.
void write_manifest(const Path& prefix, const nn::Graph& graph, const Json& preprocessing) {
  write_file_atomic(prefix.string() + "-0001.safetensors", "");
  write_file_atomic(prefix.string() + "-0001.json",
                    Json::object({{"graph", nn::graph_to_json(graph)}, {"preprocessing", preprocessing}}).dump());
}

data::Image sheet_in(const RunPlace& run) {
  data::Image sheet;
  data::decode_image(bytes_of(sheet_of(run).body), 3, sheet);
  return sheet;
}

TEST(SheetOfARun, HasThePixelsOfTheCheckpointRatherThanOfTheSettings) {
  const TemporaryFolder folder;
  data::RecordWriter writer(folder / "a.rec");
  writer.add(0, 0, bytes_of(data::encode_image({3, 8, 8, std::vector<std::uint8_t>(192, 200)}, data::Encoding::raw)));
  writer.finish();
  const RunPlace run = own_run(folder / "m-run", "data-train = \"a\"\nimage-shape = \"3,8,8\"\nnum-classes = 2\n");
  EXPECT_EQ(sheet_in(run).w, 2 + 8 * 2 + 2);
  nn::GraphBuilder builder("small", {3, 4, 4});
  write_manifest(folder / "m", builder.finish(builder.add("fc1", nn::Dense{2}, {0})),
                 Json::object({{"image_shape", Json::array({3, 4, 4})},
                               {"rgb_mean", Json::array({100, 100, 100})},
                               {"rgb_std", Json::array({50, 50, 50})},
                               {"resize", 4}}));
  EXPECT_EQ(sheet_in(run).w, 2 + 4 * 2 + 2) << "as after --finetune, whose weights say the size";
}

TEST(SheetOfARun, HasTheWholePicturesOfADetector) {
  const TemporaryFolder folder;
  const data::Annotations shown{4, 8, {{.id = 1, .label = 1, .box = {0, 0, 4, 4}, .area = 16}}};
  const std::string block = data::objects_block(shown);
  const std::string picture = data::encode_image({3, 4, 8, std::vector<std::uint8_t>(96, 255)}, data::Encoding::raw);
  data::RecordWriter writer(folder / "a.rec");
  writer.add(0, data::detection_labels(shown, block.size()), bytes_of(picture + block));
  writer.finish();
  constexpr int kSide = 256;
  const nn::NetworkOptions network{
      .name = "faster-rcnn", .image = {3, kSide, kSide}, .classes = 2, .backbone = "resnet-18"};
  write_manifest(folder / "m", nn::build_network(network),
                 Json::object({{"image_shape", Json::array({3, kSide, kSide})},
                               {"rgb_mean", Json::array({0, 0, 0})},
                               {"rgb_std", Json::array({1, 1, 1})},
                               {"crop", "none"}}));
  const data::Image sheet = sheet_in(own_run(folder / "m-run", "data-train = \"a\"\n"));
  ASSERT_EQ(sheet.w, 2 + kSide + 2);
  const auto level = [&](std::int64_t x, std::int64_t y) {
    return sheet.pixels[static_cast<std::size_t>((y * sheet.w + x) * sheet.c)];
  };
  EXPECT_EQ(level(2 + kSide / 2, 2 + kSide / 4), 255) << "twice as wide as high, above";
  EXPECT_EQ(level(2 + kSide / 2, 2 + 3 * kSide / 4), 0) << "what surrounds it, below";
}

}  // namespace
}  // namespace dtrain::board
