"""Many photos through one model: what `vit-viz survey` and `vit_viz.survey` do. It computes nothing of its own.

photos.py     which photos, with their labels and boxes; links are followed, what is passed over is told
names.py      names that are no text, or text that moves a cursor
lists.py      the lists that people have: CSV, JSON, COCO, VOC
stages.py     read and decode: a photo's file -> the model's input, or one sentence
recording.py  record: inputs -> rows, by the analyses; of explanation methods pointing, energy, deletion and insertion
columns.py    the tables and what each column means; what a filter can name
parquet.py    write: rows -> Parquet files, a batch at a time, whole or not at all
manifest.py   _survey.json: what a folder is the survey of
checking.py   whether a folder still holds what was written to it, and what of it stands when the survey goes on
local.py      the stages on one machine
ray_engine.py the stages on a Ray cluster
leftovers.py  ends Ray's processes with the one that started them
run.py        from a request to a finished folder
comparison.py two folders -> which heads moved, which answers changed

opened.py     a finished folder, opened to be asked: photos chosen by an expression of SQL
filters.py    which expressions those are, with columns as the screen calls them
atlas.py      every head over the chosen photos: mean, spread, name with evidence, exemplars
photo_lists.py    photos in lists, and by class
photo_files.py    the files of the photos, and thumbnails
trust.py      which explanation method to trust on them

The stages take and return plain values, so that either engine can run them.
"""
