#include "detection_scene.hpp"

#include <algorithm>
#include <vector>

#include "scene_paint.hpp"

namespace dtrain::data {
namespace {

constexpr std::size_t kScenePixels = std::size_t{kSceneSide} * kSceneSide;
constexpr int kNobody = -1;

// A part of the scene, in whole pixels.
struct Patch {
  int left, top, right, bottom;
};

Patch patch_around(Point centre, float reach) {
  const auto side = [](float at) { return std::clamp(static_cast<int>(std::floor(at)), 0, kSceneSide); };
  return {side(centre.x - reach), side(centre.y - reach), side(centre.x + reach + 1), side(centre.y + reach + 1)};
}

// Calls visit(number of the pixel, its middle) for each pixel of the patch.
template <typename Visit>
void for_each_pixel(const Patch& patch, const Visit& visit) {
  for (int y = patch.top; y < patch.bottom; ++y) {
    for (int x = patch.left; x < patch.right; ++x) {
      visit(static_cast<std::size_t>(y) * kSceneSide + static_cast<std::size_t>(x),
            Point{static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f});
    }
  }
}

constexpr Patch kWhole{0, 0, kSceneSide, kSceneSide};

struct PlacedShape {
  std::size_t kind = 0;
  Point centre, scale;
  Direction turn;

  float distance(const Outlines& outlines, Point pixel) const {
    const Point offset{pixel.x - centre.x, pixel.y - centre.y};
    const Point own{(offset.x * turn.cos + offset.y * turn.sin) / scale.x,
                    (offset.y * turn.cos - offset.x * turn.sin) / scale.y};
    return outlines.distance(kind, own) * std::min(scale.x, scale.y);
  }
  Patch patch() const { return patch_around(centre, 1.4f * std::max(scale.x, scale.y) + 1); }
};

PlacedShape any_shape(RandomStream& random) {
  constexpr float kSmallest = 9, kLargest = 84;
  PlacedShape shape;
  shape.kind = random.below(static_cast<std::uint32_t>(kSceneClasses.size()));
  const float share = random.uniform(), radius = kSmallest + (kLargest - kSmallest) * share * share;
  const float stretch = random.uniform(0.8f, 1.25f);
  shape.scale = {radius * stretch, radius / stretch};
  const float outside = 0.3f * radius;
  shape.centre.x = random.uniform(-outside, kSceneSide + outside);
  shape.centre.y = random.uniform(-outside, kSceneSide + outside);
  shape.turn = any_direction(random);
  return shape;
}

Bar any_bar(float thinnest, float thickest, RandomStream& random) {
  Bar bar;
  bar.centre = {random.uniform(0, kSceneSide), random.uniform(0, kSceneSide)};
  bar.turn = any_direction(random);
  bar.half_length = random.below(3) == 0 ? 0 : random.uniform(6, 70);
  bar.thickness = random.uniform(thinnest, thickest);
  return bar;
}

// Where everything is; what is painted later hides what was before.
class SceneLayout {
 public:
  SceneLayout(const Outlines& outlines, const SceneKey& key)
      : random_(key.seed, RandomUse::drawing, 100 + key.split, key.number), owner_(kScenePixels, kNobody) {
    constexpr int kTries = 12;
    const std::uint32_t wanted = 2 + random_.below(7);
    for (std::uint32_t i = 0; i < wanted; ++i) {
      for (int tries = 0; tries < kTries; ++tries) {
        if (place(outlines, any_shape(random_))) break;
      }
    }
    for (std::uint32_t left = random_.below(4); left > 0; --left) {
      bars.push_back(any_bar(0.8f, 2, random_));
      hide_behind(bars.back());
    }
  }

  std::vector<PlacedShape> shapes;
  std::vector<Bar> bars;

  Annotations annotations() const {
    Annotations found{kSceneSide, kSceneSide, {}};
    std::vector<std::uint8_t> pixels(kScenePixels);
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      std::ranges::transform(owner_, pixels.begin(), [&](int owner) { return owner == static_cast<int>(k) ? 1 : 0; });
      Rle mask = encode_mask(pixels, kSceneSide, kSceneSide);
      if (mask_area(mask) == 0) continue;
      Annotation object;
      object.id = k + 1;
      object.label = static_cast<std::int32_t>(shapes[k].kind);
      object.box = mask_box(mask);
      object.area = static_cast<double>(mask_area(mask));
      object.runs = std::move(mask.runs);
      found.objects.push_back(std::move(object));
    }
    return found;
  }

 private:
  // False, with nothing changed, where too little would be seen of it or of what it hides.
  bool place(const Outlines& outlines, const PlacedShape& shape) {
    constexpr std::size_t kFewest = 60;
    constexpr double kLeastSeen = 0.45;
    std::vector<std::size_t> covered;
    for_each_pixel(shape.patch(), [&](std::size_t pixel, Point middle) {
      if (shape.distance(outlines, middle) < 0) covered.push_back(pixel);
    });
    if (covered.size() < kFewest) return false;
    std::vector<std::size_t> lost(shapes.size());
    for (const std::size_t pixel : covered) {
      if (owner_[pixel] != kNobody) ++lost[static_cast<std::size_t>(owner_[pixel])];
    }
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const std::size_t seen = seen_[k] - lost[k];
      if (seen < kFewest || static_cast<double>(seen) < kLeastSeen * static_cast<double>(whole_[k])) return false;
    }
    for (std::size_t k = 0; k < shapes.size(); ++k) seen_[k] -= lost[k];
    for (const std::size_t pixel : covered) owner_[pixel] = static_cast<int>(shapes.size());
    shapes.push_back(shape);
    seen_.push_back(covered.size());
    whole_.push_back(covered.size());
    return true;
  }

  void hide_behind(const Bar& bar) {
    for_each_pixel(patch_around(bar.centre, bar.half_length + bar.thickness + 1), [&](std::size_t pixel, Point middle) {
      if (bar.distance(middle) < 0) owner_[pixel] = kNobody;
    });
  }

  RandomStream random_;
  std::vector<int> owner_;                 // of each pixel
  std::vector<std::size_t> seen_, whole_;  // pixels of each shape
};

class ScenePainter {
 public:
  ScenePainter(const Outlines& outlines, const SceneKey& key)
      : outlines_(outlines),
        random_(key.seed, RandomUse::drawing, 200 + key.split, key.number),
        pixels_(kScenePixels) {}

  Image paint(const SceneLayout& layout) {
    const Colour first = any_colour(random_), second = mix(first, any_colour(random_), 0.5f);
    paint_ground(first, second);
    for (std::uint32_t left = 4 + random_.below(10); left > 0; --left) paint_bar(any_bar(1, 6, random_));
    for (const PlacedShape& shape : layout.shapes) paint_shape(shape, mix(first, second, 0.5f));
    for (const Bar& bar : layout.bars) paint_bar(bar);
    return to_image();
  }

 private:
  // Even light across a length, from -1 to 1.
  struct Light {
    Point middle;
    Direction direction;
    float reach;
    float at(Point pixel) const {
      const float along = (pixel.x - middle.x) * direction.cos + (pixel.y - middle.y) * direction.sin;
      return std::clamp(along / reach, -1.0f, 1.0f);
    }
  };

  void paint_ground(const Colour& first, const Colour& second) {
    constexpr float kMiddle = kSceneSide / 2.0f;
    const Light light{{kMiddle, kMiddle}, any_direction(random_), kMiddle};
    const bool striped = random_.below(3) == 0;
    const float stripes = random_.uniform(3, 16);
    for_each_pixel(kWhole, [&](std::size_t pixel, Point middle) {
      const float flow = 0.5f + 0.5f * light.at(middle), phase = flow * stripes - std::floor(flow * stripes);
      pixels_[pixel] = mix(first, second, striped ? (phase < 0.5f ? 0.25f : 0.75f) : flow);
    });
  }

  void paint_bar(const Bar& bar) {
    const Colour colour = any_colour(random_);
    for_each_pixel(patch_around(bar.centre, bar.half_length + bar.thickness + 1), [&](std::size_t pixel, Point middle) {
      pixels_[pixel] = mix(pixels_[pixel], colour, coverage(bar.distance(middle), 1));
    });
  }

  void paint_shape(const PlacedShape& shape, const Colour& ground) {
    constexpr float kLeastContrast = 70;
    const Colour colour = colour_against(ground, kLeastContrast, random_);
    const Colour shade = mix(colour, any_colour(random_), 0.4f);
    const Light light{shape.centre, any_direction(random_), std::max(shape.scale.x, shape.scale.y)};
    for_each_pixel(shape.patch(), [&](std::size_t pixel, Point middle) {
      const float covered = coverage(shape.distance(outlines_, middle), 1);
      if (covered > 0)
        pixels_[pixel] = mix(pixels_[pixel], mix(colour, shade, 0.5f + 0.5f * light.at(middle)), covered);
    });
  }

  Image to_image() {
    const float strength = random_.uniform(2, 12);
    Image image{3, kSceneSide, kSceneSide, {}};
    image.pixels.reserve(3 * kScenePixels);
    for (const Colour& pixel : pixels_) {
      for (const float value : pixel) {
        const float noisy = value + paint_noise(random_, strength);
        image.pixels.push_back(static_cast<std::uint8_t>(std::clamp(noisy, 0.0f, 255.0f) + 0.5f));
      }
    }
    return image;
  }

  const Outlines& outlines_;
  RandomStream random_;
  std::vector<Colour> pixels_;
};

}  // namespace

Annotations scene_objects(const Outlines& outlines, const SceneKey& key) {
  return SceneLayout(outlines, key).annotations();
}

Image paint_scene(const Outlines& outlines, const SceneKey& key) {
  return ScenePainter(outlines, key).paint(SceneLayout(outlines, key));
}

}  // namespace dtrain::data
