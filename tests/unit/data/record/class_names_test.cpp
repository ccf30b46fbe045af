#include <gtest/gtest.h>

#include <chrono>

#include <dtrain/base/error.hpp>
#include <dtrain/data/class_names.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

using Names = std::vector<std::string>;

TEST(ClassNames, StandBesideTheRecordsOfEveryShardAndSplit) {
  TemporaryFolder folder;
  write_file_atomic(folder / "p.pack.json", R"({"classes": ["cat", "dog"]})");
  for (const char* name : {"p.rec", "p_3.rec", "p_train.rec", "p_val.rec", "p_test.rec", "p_val_12.rec"}) {
    EXPECT_EQ(class_names(std::vector<Path>{folder / name}), (Names{"cat", "dog"})) << name;
  }
  for (const char* name : {"q.rec", "p_other.rec", "p_.rec"}) {
    EXPECT_EQ(class_names(std::vector<Path>{folder / name}), Names{}) << name;
  }
}

TEST(ClassNames, AreOfTheFilesThatTheSetLists) {
  TemporaryFolder folder;
  write_file_atomic(folder / "p.pack.json", R"({"plan": "1f", "classes": ["cat"], "files": [{"file": "p_0.rec"}]})");
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p_0.rec"}), Names{"cat"});
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p_train.rec"}), Names{}) << "of an earlier set";
  write_file_atomic(folder / "p.pack.json", R"({"plan": "prepare", "classes": ["cat"], "files": []})");
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p_train.rec"}), Names{"cat"});
}

TEST(ClassNames, AreOfTheEarlierSetForFilesThatAreNotReplacedYet) {
  TemporaryFolder folder;
  write_file_atomic(folder / "p.pack.json",
                    R"({"plan": "1f", "classes": ["emu"], "files": [{"file": "p_0.rec", "bytes": 4}],
                        "earlier_sets": [{"classes": ["cat"], "files": [{"file": "p_1.rec", "bytes": 3}]}]})");
  write_file_atomic(folder / "p_1.rec", "abc");
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p_0.rec"}), Names{"emu"});
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p_1.rec"}), Names{"cat"});
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p_2.rec"}), Names{}) << "of neither set";
  write_file_atomic(folder / "p_1.rec", "abcd");
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p_1.rec"}), Names{}) << "replaced by a run that did not say so";
}

TEST(ClassNames, AreThoseOfTheSetThatWroteTheFileAsItIs) {
  TemporaryFolder folder;
  const Path rec = folder / "p_train.rec", own = folder / "p_train.pack.json", shared = folder / "p.pack.json";
  const auto names = [&] { return class_names(std::vector<Path>{rec}); };
  write_file_atomic(own, R"({"plan": "1f", "classes": ["bear"], "files": [{"file": "p_train.rec", "bytes": 3}]})");
  write_file_atomic(shared, R"({"plan": "2f", "classes": ["ant"], "files": [{"file": "p_train.rec", "bytes": 4}]})");
  write_file_atomic(rec, "abcd");
  EXPECT_EQ(names(), Names{"ant"}) << "the other says another size";
  write_file_atomic(rec, "abcde");
  EXPECT_EQ(names(), Names{}) << "neither says this size";
  write_file_atomic(rec, "abc");
  EXPECT_EQ(names(), Names{"bear"});
  write_file_atomic(shared, R"({"plan": "2f", "classes": ["ant"], "files": [{"file": "p_train.rec", "bytes": 3}]})");
  const auto now = std::filesystem::last_write_time(rec);
  std::filesystem::last_write_time(own, now - std::chrono::seconds(10));
  std::filesystem::last_write_time(shared, now);
  EXPECT_EQ(names(), Names{"ant"}) << "both say it, and this one is newer";
  std::filesystem::last_write_time(own, now + std::chrono::seconds(10));
  EXPECT_EQ(names(), Names{"bear"});
}

TEST(ClassNames, AreTheSameInAllFilesOfATraining) {
  TemporaryFolder folder;
  write_file_atomic(folder / "a.pack.json", R"({"classes": ["cat", "dog"]})");
  write_file_atomic(folder / "b.pack.json", R"({"classes": ["bird", "dog"]})");
  write_file_atomic(folder / "day_2.pack.json", R"({"classes": ["owl"]})");
  write_file_atomic(folder / "day_1.pack.json", R"({"classes": ["cat"]})");
  const auto names_of = [&](const Names& files) {
    std::vector<Path> paths;
    for (const std::string& file : files) paths.push_back(folder / file);
    return class_names(paths);
  };
  EXPECT_EQ(names_of({"a_0.rec", "a_1.rec", "a_val.rec"}), (Names{"cat", "dog"}));
  EXPECT_EQ(names_of({"x.rec", "a_0.rec", "y.rec"}), (Names{"cat", "dog"})) << "files without names fit";
  expect_error([&] { names_of({"a_0.rec", "a_1.rec", "x.rec", "b.rec"}); }, "b.rec: class 0 is \"bird\", but in ");
  expect_error([&] { names_of({"day_1.rec", "day_2.rec"}); }, "day_2.rec: class 0 is \"owl\", but in ");
}

TEST(ClassNames, AreThoseOfTheLongestList) {
  TemporaryFolder folder;
  write_file_atomic(folder / "a.pack.json", R"({"classes": ["cat", "dog"]})");
  write_file_atomic(folder / "b.pack.json", R"({"classes": ["cat", "dog", "fox"]})");
  write_file_atomic(folder / "c.pack.json", R"({"classes": ["cat", "dog", "gnu"]})");
  const Path a = folder / "a.rec", b = folder / "b.rec", c = folder / "c.rec";
  const Names all{"cat", "dog", "fox"};
  EXPECT_EQ(class_names(std::vector<Path>{a, b, a}), all);
  EXPECT_EQ(class_names(std::vector<Path>{b, a}), all);
  expect_error([&] { class_names(std::vector<Path>{a, b, c}); }, "c.rec: class 2 is \"gnu\", but in " + b.string());
}

TEST(ClassNames, AreNotShownWhereFilesContradictEachOther) {
  TemporaryFolder folder;
  write_file_atomic(folder / "a.pack.json", R"({"classes": ["cat"]})");
  write_file_atomic(folder / "b.pack.json", R"({"classes": ["owl"]})");
  std::vector<std::string> warnings;
  const auto shown = [&](const std::vector<Path>& files) {
    return class_names_to_show(files, [&](const std::string& text) { warnings.push_back(text); });
  };
  EXPECT_EQ(shown({folder / "a.rec"}), Names{"cat"});
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(shown({folder / "a.rec", folder / "b.rec"}), Names{});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("b.rec: class 0 is \"owl\", but in "), std::string::npos) << warnings[0];
}

TEST(ClassNames, AreNoneWhereTheFileIsDamaged) {
  TemporaryFolder folder;
  write_file_atomic(folder / "p.pack.json", "{");
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p.rec"}), Names{});
  write_file_atomic(folder / "p.pack.json", R"({"classes": ["cat"], "files": [7]})");
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p.rec"}), Names{});
  std::filesystem::create_symlink("/proc/self/mem", folder / "q.pack.json");  // reading its beginning is an I/O error
  EXPECT_THROW(read_file(folder / "q.pack.json"), Error);
  EXPECT_EQ(class_names(std::vector<Path>{folder / "q.rec"}), Names{});
  EXPECT_EQ(class_names({}), Names{});
  EXPECT_EQ(class_names(std::vector<Path>{"s3://bucket/p.rec"}), Names{});
}

TEST(ClassNames, NameTheFirstDifference) {
  const auto message = [](const Names& expected, const Names& found) -> std::string {
    try {
      require_same_classes({"the checkpoint", expected}, {"d/p_val", found});
    } catch (const DataError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(message({"cat", "dog"}, {"cat", "dog"}), "");
  EXPECT_EQ(message({}, {"cat"}), "");
  EXPECT_EQ(message({"cat", "dog", "owl"}, {"cat", "emu", "owl"}),
            "d/p_val: class 1 is \"emu\", but in the checkpoint it is \"dog\"");
  EXPECT_EQ(message({"cat", "dog"}, {"cat"}), "d/p_val: class 1 is missing, but in the checkpoint it is \"dog\"");
  EXPECT_EQ(message({"cat"}, {"cat", "dog"}), "d/p_val: class 1 is \"dog\", but in the checkpoint it is missing");
}

TEST(ClassNames, ThatLookTheSameAreShownByTheirBytes) {
  const std::string composed = "caf\xc3\xa9", decomposed = "cafe\xcc\x81";
  const Names one{composed}, other{decomposed}, third{"caf\xc3\xa8"};
  expect_error(
      [&] {
        require_same_classes({"a", one}, {"b", other});
      },
      "b: class 0 is \"cafe\\xcc\\x81\", but in a it is \"caf\\xc3\\xa9\"");
  expect_error([&] { require_same_classes({"a", one}, {"b", third}); }, "in a it is \"" + composed + "\"");
  const auto found = look_alikes(Names{"bar", composed, "tea", decomposed});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->one, "caf\\xc3\\xa9");
  EXPECT_EQ(found->other, "cafe\\xcc\\x81");
  EXPECT_FALSE(look_alikes(Names{"cafe", composed, "caf\xc3\xa8", "\xe7\x8c\xab", "\xe7\x8a\xac", ""}));
}

TEST(ClassNames, DifferWithoutTheSecretsOfTheirFiles) {
  const Names one{"cat"}, other{"dog"};
  const std::string there = "https://user:pw@example.org/a.rec,https://user:pw@example.org/b.rec?signature=s";
  const ClassList behind_url{there, one}, local{"p_val", other};
  expect_error([&] { require_same_classes(behind_url, local); },
               "in https://example.org/a.rec,https://example.org/b.rec it is \"cat\"");
  expect_error([&] { require_class_count(3, behind_url); },
               "https://example.org/a.rec,https://example.org/b.rec: names 1 classes");
}

TEST(ClassNames, AreAsManyAsACheckpointWithoutNamesHasClasses) {
  const Names none, two{"cat", "dog"};
  EXPECT_NO_THROW(require_class_count(2, {"d/p_val", two}));
  EXPECT_NO_THROW(require_class_count(3, {"d/p_val", none}));
  for (const int classes : {1, 3}) {
    try {
      require_class_count(classes, {"d/p_val", two});
      ADD_FAILURE() << classes;
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(),
                "d/p_val: names 2 classes, but the checkpoint has " + std::to_string(classes) + ", without names");
    }
  }
}

TEST(ClassNames, FollowTheLabel) {
  const Names names{"cat", "dog"};
  EXPECT_EQ(label_text(1, names), "1 dog");
  EXPECT_EQ(label_text(2, names), "2");
  EXPECT_EQ(label_text(-1, names), "-1");
}

}  // namespace
}  // namespace dtrain::data
