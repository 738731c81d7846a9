"""The lists that people have, each by a case worked by hand."""

from __future__ import annotations

import json

import pytest

from vit_viz.errors import ParameterError
from vit_viz.surveys.lists import notes_in
from vit_viz.surveys.photos import Note

VOC = """<annotation><filename>street.jpg</filename>
<object><name>car</name><bndbox><xmin>9</xmin><ymin>3</ymin><xmax>20</xmax><ymax>11</ymax></bndbox></object>
<object><name>{second}</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>1</xmax><ymax>2.5</ymax></bndbox>
<part><name>wheel</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part></object>
</annotation>"""


def written(tmp_path, name, content):
    file = tmp_path / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def test_a_csv_has_a_row_per_photo(tmp_path):
    text = '\ufefffile,label,boxes\na.jpg,tabby,"[[1, 2, 3.5, 4]]"\nsub/b.jpg,,\n'
    assert notes_in(written(tmp_path, "list.csv", text)) == {
        "a.jpg": Note("tabby", ((1.0, 2.0, 3.5, 4.0),)),
        "sub/b.jpg": Note(),
    }


def test_a_csv_may_have_a_row_per_box(tmp_path):
    text = "path,class_index,left,top,right,bottom\na.jpg,0,1,2,3,4\na.jpg,0,5,6,7,8\nb.jpg,12,,,,\n"
    assert notes_in(written(tmp_path, "list.CSV", text)) == {
        "a.jpg": Note("0", ((1, 2, 3, 4), (5, 6, 7, 8)), 0),
        "b.jpg": Note("12", (), 12),
    }


@pytest.mark.parametrize("name", ["file", "path", "file_name", "filename", "image"])
def test_a_photo_may_be_named_in_any_of_five_columns(tmp_path, name):
    assert notes_in(written(tmp_path, "list.csv", f"{name},label\na.jpg,cat\n")) == {"a.jpg": Note("cat")}


def test_of_several_names_and_labels_the_first_that_says_something_counts(tmp_path):
    rows = [
        {"image": "no.jpg", "path": "a.jpg", "class_name": "no", "class": "no", "label": "no", "synset": "n01"},
        {"filename": "no.jpg", "file_name": "b.jpg", "class_name": "no", "class": "b", "label": "", "synset": None},
        {"image": "no.jpg", "filename": "c.jpg", "class_name": "c", "class_index": 4},
    ]  # fmt: skip
    assert notes_in(written(tmp_path, "list.json", rows)) == {
        "a.jpg": Note("n01"),
        "b.jpg": Note("b"),
        "c.jpg": Note("c", (), 4),
    }


def test_a_later_row_of_a_photo_adds_to_it_and_says_no_less(tmp_path):
    rows = [
        {"file": "a.jpg", "label": "cat", "class_index": 3, "boxes": [[1, 2, 3, 4]]},
        {"file": "b.jpg"},
        {"file": "a.jpg", "boxes_xyxy": [[5, 6, 7, 9], [0, 0, 1, 2]], "boxes": [[1, 1, 2, 2]]},
        {"file": "b.jpg", "label": "dog", "class_index": 0},
    ]
    assert notes_in(written(tmp_path, "list.json", rows)) == {
        "a.jpg": Note("cat", ((1, 2, 3, 4), (5, 6, 7, 9), (0, 0, 1, 2)), 3),
        "b.jpg": Note("dog", (), 0),
    }


def test_a_box_of_which_a_side_is_missing_is_none(tmp_path):
    text = "file,left,top,right,bottom\na.jpg,1,2,3,\nb.jpg,0,0,0.5,7\nc.jpg,,2,3,4\n"
    found = notes_in(written(tmp_path, "list.csv", text))
    assert [note.boxes for note in found.values()] == [(), ((0, 0, 0.5, 7),), ()]


def test_an_object_of_no_known_category_leaves_the_photo_without_a_label(tmp_path):
    coco = {
        "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
        "categories": [{"id": 5, "name": "cat"}],
        "annotations": [
            {"image_id": 1, "category_id": 5, "bbox": [0, 0, 3, 4]},
            {"image_id": 1, "category_id": 6, "bbox": [1, 0, 3, 4]},
            {"image_id": 2, "bbox": [2, 0, 3, 4]},
        ],
    }
    found = notes_in(written(tmp_path, "coco.json", coco))
    assert [(note.label, len(note.boxes)) for note in found.values()] == [("", 2), ("", 1)]
    del coco["categories"]
    assert notes_in(written(tmp_path, "coco.json", coco))["a.jpg"].label == ""


def test_a_folder_of_voc_is_read_by_name_and_a_file_without_one_is_of_the_jpeg_beside_it(tmp_path):
    for name in ("c", "a", "b"):
        written(tmp_path, f"{name}.xml", "<annotation><object><name>x</name><bndbox><xmin>2</xmin><ymin>4</ymin>"
                "<xmax>3</xmax><ymax>9</ymax></bndbox></object></annotation>")  # fmt: skip
    written(tmp_path, "notes.txt", "<annotation>")
    written(tmp_path, "empty.xml", "<annotation><filename>e.png</filename></annotation>")
    box = ((1, 3, 3, 9),)
    assert list(notes_in(tmp_path).items()) == [
        ("a.jpg", Note("x", box)), ("b.jpg", Note("x", box)), ("c.jpg", Note("x", box)), ("e.png", Note()),
    ]  # fmt: skip


def test_cocos_boxes_are_turned_into_sides_and_the_label_is_the_only_category(tmp_path):
    coco = {
        "images": [
            {"id": 7, "file_name": "a.jpg"},
            {"id": 8, "file_name": "b.jpg"},
            {"id": 9, "file_name": "c.jpg"},
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"image_id": 8, "category_id": 1, "bbox": [10, 20, 30, 40]},
            {"image_id": 7, "category_id": 2, "bbox": [0.5, 1, 2, 3]},
            {"image_id": 8, "category_id": 2, "bbox": [1, 1, 1, 1]},
        ],
    }
    assert notes_in(written(tmp_path, "coco.json", coco)) == {
        "a.jpg": Note("dog", ((0.5, 1, 2.5, 4),)),
        "b.jpg": Note("", ((10, 20, 40, 60), (1, 1, 2, 2))),
        "c.jpg": Note(),
    }


@pytest.mark.parametrize(("second", "label"), [("car", "car"), ("dog", "")])
def test_vocs_pixels_count_from_one_and_parts_are_no_objects(tmp_path, second, label):
    written(tmp_path, "street.xml", VOC.format(second=second))
    assert notes_in(tmp_path) == {"street.jpg": Note(label, ((8, 2, 20, 11), (0, 0, 1, 2.5)))}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("list.json", "{", r"list\.json cannot be read as a list of photos: Expecting"),
        ("list.json", {"a": 1}, "neither a list of objects nor COCO's"),
        ("list.json", [1, 2], "neither a list of objects nor COCO's"),
        ("list.json", [], "names no photo"),
        ("list.json", [{"label": "x"}], r"list\.json, entry 1, names no file: it needs file or path"),
        ("list.json", [{"file": "a", "class_index": -1}], "a whole number from 0, not '-1'"),
        ("list.json", [{"file": "a"}, {"file": "b", "boxes": [[1, 2, 3]]}], "entry 2: a box is"),
        ("list.json", [{"file": "a", "boxes": [[3, 2, 3, 9]]}], "its left before its right"),
        ("list.json", [{"file": "a", "boxes": [[1, 9, 3, 2]]}], "its top above its bottom"),
        ("list.json", '[{"file": "a", "boxes": [[1, 2, Infinity, 9]]}]', "a box has"),
        ("list.json", [{"file": "a", "boxes": [[0, 2, 3, 2]]}], "its top above its bottom"),
        ("list.json", [{"file": "a", "class_index": 2.5}], r"entry 1: class_index is a whole number from 0, not '2\.5'"),
        ("list.csv", "file,boxes\na.jpg,7\n", "boxes are lists of four numbers, not '7'"),
        ("list.csv", "file,label\n", r"list\.csv names no photo\.$"),
        ("list.json", [{"file": "a"}, {"path": ""}], "entry 2, names no file"),
        ("a.xml", "<!ENTITY b><annotation/>", "declares entities"),
        ("list.json", [{"file": "a", "boxes": 7}], "boxes are lists of four numbers, not '7'"),
        ("list.csv", "file,boxes\na.jpg,nonsense\n", "boxes are lists of four numbers, not 'nonsense'"),
        ("list.json", {"images": [], "annotations": [{"image_id": 3}]}, "looks like COCO's annotations"),
        ("list.json", {"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 1, "bbox": [1, 2, 0, 4]}]},
         "annotation 1: a box has"),
        ("a.xml", "<annotation>", "cannot be read as a list of photos"),
        ("a.xml", '<!DOCTYPE a [<!ENTITY b "c">]><annotation/>', "declares entities"),
        ("a.xml", "<annotation><object><name>x</name></object></annotation>", r"a\.xml: a box is"),
    ],
)  # fmt: skip
def test_what_is_no_list_is_refused_with_the_place(tmp_path, name, content, sentence):
    file = written(tmp_path, name, content)
    with pytest.raises(ParameterError, match=sentence):
        notes_in(tmp_path if file.suffix == ".xml" else file)


def test_a_list_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ParameterError, match=r"none\.csv cannot be read as a list of photos: No such file"):
        notes_in(tmp_path / "none.csv")
